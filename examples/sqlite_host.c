/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A database in a sandbox: each statement is a call, the tables live as long as the sandbox, and a bad
 * statement is an error of that call alone.
 *
 *     sqlite_host build/guests/sqlite
 */
#include <pinhole/pinhole.h>
#include <stdio.h>

#include "backend.h"

/* Runs one statement and prints its rows, or what the guest says is wrong with it. */
static ph_status query(ph_sandbox *sandbox, const ph_function *function, const char *statement) {
    const ph_value text = {.type = PH_STR, .str = statement};
    ph_value rows;
    ph_status status = ph_call(sandbox, function, &text, 1, &rows);

    if (status == PH_OK)
        printf("%s\n", rows.str);
    else
        printf("%s: %s\n", ph_status_kind(status), ph_sandbox_error(sandbox)->message);
    return status;
}

int main(int argc, char **argv) {
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = NULL;
    ph_sandbox *sandbox = NULL;
    ph_error error = {.message = "one argument is needed: the guest"};

    config.backend = example_backend();
    config.timeout_ns = 5000000000u;
    if (argc != 2 || ph_image_open(argv[1], 0, &image, &error) ||
        ph_sandbox_create(image, &config, &sandbox, &error)) {
        fprintf(stderr, "%s\n", error.message);
        ph_image_close(image);
        return 1;
    }
    ph_status status = ph_sandbox_start(sandbox);
    if (status == PH_OK) {
        const ph_function *function = ph_image_find_export(image, "query");
        query(sandbox, function, "CREATE TABLE planets (name TEXT, moons INTEGER)");
        query(sandbox, function, "INSERT INTO planets VALUES ('Mars', 2), ('Jupiter', 95), ('Venus', 0)");
        query(sandbox, function, "SELECT nonsense");
        status =
            query(sandbox, function, "SELECT name, moons FROM planets WHERE moons > 0 ORDER BY moons DESC");
    } else {
        fprintf(stderr, "%s\n", ph_sandbox_error(sandbox)->message);
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
    return status == PH_OK ? 0 : 1;
}
