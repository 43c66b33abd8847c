/* What a server says instead of becoming a WebSocket: an HTTP answer whose body
 * is {"error":{"code":…,"message":…}} when it is ours, and anything when it is
 * another program's. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/c/internal.h"

/* The body so far; false: the head is not whole yet. */
static bool find_body(struct str bytes, struct str *head, struct str *body)
{
    const char *end = memmem(bytes.p, bytes.n, "\r\n\r\n", 4);
    size_t n = end ? (size_t)(end - bytes.p) : 0;

    *head = str_sub(bytes, 0, n);
    *body = end ? str_sub(bytes, n + 4, bytes.n) : (struct str){0};
    return end != NULL;
}

/* How long it says that it will be; zero: it does not. */
static int64_t body_bytes(struct str head)
{
    static const char name[] = "\r\ncontent-length:";
    int64_t n = 0;

    for (size_t i = 0; i + sizeof(name) <= head.n; i++) {
        size_t at = i + sizeof(name) - 1, end;

        if (strncasecmp(head.p + i, name, sizeof(name) - 1) != 0)
            continue;
        while (at < head.n && head.p[at] == ' ')
            at++;
        end = str_find(head, '\r', at);
        if (str_to_i64(str_sub(head, at, end), &n) != OK || n < 0)
            n = 0;
        break;
    }
    return n;
}

bool sbc_refusal_is_whole(struct str bytes)
{
    struct str head, body;

    if (bytes.n >= SBC_ANSWER_HEAD_MAX)
        return true;
    return find_body(bytes, &head, &body) &&
           (int64_t)body.n >= body_bytes(head);
}

bool sbc_refusal_read(struct str bytes, char *words, size_t n)
{
    struct str head, body, said = {0};
    struct json *v = NULL;
    struct arena a;

    arena_init(&a, SBC_TREE_MAX);
    if (find_body(bytes, &head, &body))
        v = json_parse(&a, body, 0, NULL);
    if (v)
        said = json_str_or(json_get(json_get(v, STR("error")), STR("message")),
                           STR(""));
    snprintf(words, n, "%.*s", STR_ARG(str_head(said, n - 1)));
    str_tame(words, strlen(words));
    arena_fini(&a);
    return words[0] != '\0';
}
