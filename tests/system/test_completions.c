/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What bash offers behind the words of a command line: they are split as bash splits them, at '=' and ':'.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/support.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The completions of the last of (words), which are quoted for a shell, each with a space behind it. In
 * static memory. */
static const char *completions_of(const char *words) {
    static char output[8192];
    char line[4096];
    const char *source = getenv("PH_TEST_SOURCE");

    assert_non_null(source);
    snprintf(
        line, sizeof line,
        "cd '%s' && bash -c '. completions/pinhole.bash; COMP_WORDS=(%s); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pinhole 2>/dev/null; printf \"%%s \" \"${COMPREPLY[@]}\"'",
        source, words);
    FILE *pipe = popen(line, "r"); // NOLINT(cert-env33-c): a constant line
    assert_non_null(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = 0;
    int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        skip(); /* there is no bash */
    assert_int_equal(status, 0);
    return output;
}

static void options_take_their_values_behind_a_space_or_a_sign(void **state) {
    static const struct {
        const char *words, *completions;
    } expected[] = {
        {"pinhole fun", "functions "},
        {"pinhole sn", "snapshot "},
        {"pinhole call --trace-po", "--trace-policy "},
        {"pinhole call --re", "--repeat --restore "},
        {"pinhole call --snapshot LICEN", "LICENSE "},
        {"pinhole call --snapshot = LICEN", "LICENSE "},
        {"pinhole snapshot \"\"", "save info verify "},
        {"pinhole snapshot v", "verify "},
        {"pinhole help d", "doctor "},
        {"pinhole help snapshot s", "save "},
        {"pinhole help call \"\"", " "},
        {"pinhole snapshot info --j", "--json "},
        {"pinhole snapshot verify LICEN", "LICENSE "},
        {"pinhole snapshot verify LICENSE LICEN", " "},
        {"pinhole snapshot save LICEN", "LICENSE "},
        {"pinhole snapshot save --memory = 32M --ca", "--call "},
        {"pinhole snapshot save LICENSE -o LICEN", "LICENSE "},
        {"pinhole snapshot save LICENSE -o x --ca", "--call "},
        {"pinhole snapshot save LICENSE -o x --call f @LICEN", "@LICENSE "},
        {"pinhole snapshot save LICENSE -o x --call f --ca", " "},
        {"pinhole call --trace-level \"\"", "off error warn info debug trace "},
        {"pinhole call --trace-level =", "off error warn info debug trace "},
        {"pinhole call --trace-level = de", "debug "},
        {"pinhole run --trace-policy = f", "flight "},
        {"pinhole run --backend =", "auto kvm soft "},
        {"pinhole call --backend = s", "soft "},
        {"pinhole --backend = k", "kvm "},
        {"pinhole run --trace = j", "jsonl jsonl: "},
        {"pinhole run --trace t", "text text: "},
        {"pinhole run --trace = f", "folded: "},
        {"pinhole run --trace o", "otlp otlp: otlp-json: "},
        {"pinhole run --flush-timeout =", " "},
        {"pinhole call --trace-p", "--trace-policy "},
        {"pinhole call --tracep", "--traceparent "},
        {"pinhole call --trace \"\"",
         "text jsonl otlp text: jsonl: otlp: otlp-json: html: perfetto: chrome: ctf: folded: speedscope: "},
        {"pinhole call --trace speedscope : LICEN", "LICENSE "},
        {"pinhole run --memory =", " "},
        {"pinhole run --metr", "--metrics-listen "},
        {"pinhole call --metr", "--metrics-listen "},
        {"pinhole snapshot save --metr", " "},
        {"pinhole call --metrics-listen \"\"", "127.0.0.1:9464 "},
        {"pinhole call --metrics-listen =", "127.0.0.1:9464 "},
        {"pinhole run --metrics-listen = 127.0.0.1 : 9464 LICEN", "LICENSE "},
        {"pinhole run --metrics-listen : 9464 LICEN", "LICENSE "},
        /* A path is one of the tree, where this runs. */
        {"pinhole run --trace text : LICEN", "LICENSE "},
        {"pinhole run --trace = jsonl : LICEN", "LICENSE "},
        {"pinhole run --trace-level = debug LICEN", "LICENSE "},
        {"pinhole run --trace = text : LICENSE --trace-ri", "--trace-ring "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++) {
        const char *got = completions_of(expected[i].words);
        if (strcmp(got, expected[i].completions) != 0)
            fail_msg("%s: '%s' and not '%s'", expected[i].words, got, expected[i].completions);
    }
    const char *files = completions_of("pinhole run --trace text :");
    assert_non_null(strstr(files, "LICENSE "));
    /* What is behind the sign of --host NAME=JSON is no value of an option. */
    assert_string_equal(completions_of("pinhole call --host name ="), " ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_their_values_behind_a_space_or_a_sign),
    };
    return cmocka_run_group_tests_name("completions", tests, NULL, NULL);
}
