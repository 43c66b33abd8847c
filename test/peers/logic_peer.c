/* Rules in, their values out: each line is a list of a rule and its data, and
 * becomes the value, "refused" (no rule) or "failed" (not worked out).
 * test/peers/logic_npm.js says the same of what the reference makes of them. */
#include <stdio.h>
#include <stdlib.h>

#include "test/lib/logic_stage.h"

int main(void)
{
    struct logic_stage s;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    logic_stage_init(&s);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct str rest = {line, (size_t)n - 1}, rule, data, said;

        if (!json_next(&rest, &rule) || !json_next(&rest, &data)) {
            fprintf(stderr, "logic_peer: this is no rule and its data\n");
            return 1;
        }
        said = logic_stage_run(&s, rule, data);
        printf("%.*s\n", STR_ARG(said));
    }
    free(line);
    logic_stage_fini(&s);
    return 0;
}
