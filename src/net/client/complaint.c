/* The message of an error answer, and when to come back. Both are read with
 * suspicion: the message may repeat the key that we sent and contain terminal
 * escapes, the time may be anything.
 *
 * Dates are read in all three forms that RFC 9110 requires recipients to
 * accept. */
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "net/client/fetch.h"

enum { SCRATCH_BYTES = 64 * 1024, DATE_BYTES = 64 };

/* OpenAI and llama.cpp: error.message; Ollama and TEI: error; vLLM: message;
 * FastAPI: detail. */
static struct str find_message(const struct json *root)
{
    const struct json *error = json_get(root, STR("error"));
    const struct json *places[] = {json_get(error, STR("message")), error,
                                   json_get(root, STR("message")),
                                   json_get(root, STR("detail"))};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (places[i] && places[i]->type == JSON_STR && places[i]->s.n)
            return places[i]->s;
    return (struct str){0};
}

/* The position and length of the first secret in s; s.n and zero: there is
 * none. */
static size_t find_secret(struct str s, const struct str *secrets, size_t n,
                          size_t *length)
{
    size_t first = s.n;

    *length = 0;
    for (size_t i = 0; i < n; i++) {
        struct str one = secrets[i];
        const char *at = one.n ? memmem(s.p, s.n, one.p, one.n) : NULL;

        if (at && (size_t)(at - s.p) < first) {
            first = (size_t)(at - s.p);
            *length = one.n;
        }
    }
    return first;
}

static void put_tamed(const struct buf *text, char *out, size_t size)
{
    struct str head = str_head(buf_str(text), size - 1);

    if (text->over)
        return;
    if (head.n)
        memcpy(out, head.p, head.n);
    out[head.n] = '\0';
    out[str_tame(out, head.n)] = '\0';
}

void fetch_complaint(struct str body, const struct str *secrets,
                     size_t n_secrets, char *out, size_t size)
{
    struct json *root;
    struct arena scratch;
    struct str rest;
    struct buf text;

    out[0] = '\0';
    arena_init(&scratch, SCRATCH_BYTES);
    buf_init(&text, SCRATCH_BYTES);
    root = json_parse(&scratch, body, 0, NULL);
    rest = root ? find_message(root) : (struct str){0};
    while (rest.n) {
        size_t length, at = find_secret(rest, secrets, n_secrets, &length);

        buf_add_str(&text, str_sub(rest, 0, at));
        if (length)
            buf_add_str(&text, STR("[the key]"));
        rest = str_sub(rest, at + length, rest.n);
    }
    put_tamed(&text, out, size);
    buf_fini(&text);
    arena_fini(&scratch);
}

static bool read_date(struct str s, int64_t *at_ms)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT",
                                        "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    char text[DATE_BYTES];

    if (s.n >= sizeof(text) || !s.n)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);

        if (end && !*end) {
            *at_ms = (int64_t)timegm(&tm) * 1000;
            return true;
        }
    }
    return false;
}

int64_t fetch_retry_after_ms(const struct fetch_answer *a, int64_t now_ms)
{
    int64_t n, most = FETCH_RETRY_MAX_MS;

    for (size_t i = 0; i < a->n_headers; i++) {
        struct str v = a->headers[i].value;

        if (!str_eq_nocase(a->headers[i].name, STR("retry-after")))
            continue;
        if (str_to_i64(v, &n) == OK)
            n = n <= 0 ? 0 : n < most / 1000 ? n * 1000 : most;
        else if (read_date(v, &n))
            n = n - now_ms;
        else
            continue;
        return n < 0 ? 0 : n < most ? n : most;
    }
    return 0;
}
