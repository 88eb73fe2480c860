/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * SHA-256 gives what NIST's examples for FIPS 180-4 give, whatever the pieces that the bytes come in, with
 * the processor's instructions for it and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void check_digest(const uint8_t *digest, const char *wanted) {
    char text[2 * PH__SHA256_SIZE + 1];

    for (size_t i = 0; i < PH__SHA256_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, wanted);
}

static void check(const void *bytes, size_t size, const char *wanted) {
    struct ph__sha256 hash;
    uint8_t digest[PH__SHA256_SIZE];

    ph__sha256_begin(&hash);
    ph__sha256_add(&hash, bytes, size);
    ph__sha256_end(&hash, digest);
    check_digest(digest, wanted);
}

static void the_examples_of_the_standard_come_out(void **state) {
    (void)state;
    check(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
          "mnopqrstnopqrstu",
          112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void a_million_letters_come_out(void **state) {
    const size_t size = 1000000;
    char *bytes = malloc(size);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'a', size);
    check(bytes, size, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(bytes);
}

static void pieces_of_every_size_come_to_the_same(void **state) {
    uint8_t bytes[3 * PH__SHA256_BLOCK + 7];
    uint8_t whole[PH__SHA256_SIZE], parts[PH__SHA256_SIZE];
    struct ph__sha256 hash;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        ph__sha256_begin(&hash);
        ph__sha256_add(&hash, bytes, size);
        ph__sha256_end(&hash, whole);
        for (size_t piece = 1; piece <= PH__SHA256_BLOCK + 1; piece++) {
            ph__sha256_begin(&hash);
            for (size_t done = 0; done < size; done += piece)
                ph__sha256_add(&hash, bytes + done, size - done < piece ? size - done : piece);
            ph__sha256_end(&hash, parts);
            assert_memory_equal(whole, parts, sizeof whole);
        }
    }
}

static int with_instructions(void **state) {
    (void)state;
    ph__sha256_plain = false;
    return 0;
}

static int without_instructions(void **state) {
    (void)state;
    ph__sha256_plain = true;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_examples_of_the_standard_come_out, with_instructions),
        cmocka_unit_test_setup(the_examples_of_the_standard_come_out, without_instructions),
        cmocka_unit_test_setup(a_million_letters_come_out, with_instructions),
        cmocka_unit_test_setup(a_million_letters_come_out, without_instructions),
        cmocka_unit_test_setup(pieces_of_every_size_come_to_the_same, with_instructions),
        cmocka_unit_test_setup(pieces_of_every_size_come_to_the_same, without_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
