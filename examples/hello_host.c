/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The smallest host: runs the guest hello, answers its host function, and calls its export.
 *
 *     hello_host build/guests/hello World
 */
#include <pinhole/pinhole.h>
#include <stdio.h>

static ph_status weekday(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    static const char *const names[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};
    const int32_t *today = context;

    if (args[0].i32 < 0)
        return ph_host_fail(call, 1, "no day before today");
    result->str = names[(*today + args[0].i32 % 7) % 7];
    return PH_OK;
}

int main(int argc, char **argv) {
    const ph_signature weekday_types = {.result = PH_STR, .count = 1, .args = {PH_I32}};
    int32_t today = 4;
    ph_image *image = NULL;
    ph_sandbox *sandbox = NULL;
    ph_error error = {.message = "two arguments are needed: the guest and a name"};
    ph_value result;

    if (argc != 3 || ph_image_open(argv[1], 0, &image, &error) ||
        ph_sandbox_create(image, NULL, &sandbox, &error)) {
        fprintf(stderr, "%s\n", error.message);
        ph_image_close(image);
        return 1;
    }
    const ph_function *greet = ph_image_find_export(image, "greet");
    const ph_value name = {.type = PH_STR, .str = argv[2]};
    ph_status status = ph_sandbox_register(sandbox, "weekday", &weekday_types, weekday, &today);
    if (status == PH_OK)
        status = ph_sandbox_start(sandbox);
    if (status == PH_OK)
        status = ph_call(sandbox, greet, &name, 1, &result);
    if (status == PH_OK)
        puts(result.str);
    else
        fprintf(stderr, "%s\n", ph_sandbox_error(sandbox)->message);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
    return status == PH_OK ? 0 : 1;
}
