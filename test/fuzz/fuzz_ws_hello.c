/* Any bytes as a handshake. The first byte chooses the side.
 *
 * As a request: whatever the reader of HTTP lets pass is judged; what is agreed
 * to has what an agreement needs, looked for in a plainer way.
 * As an answer: read whole and at every length up to that. What is agreed to
 * holds the one answer to the key, and a decision does not change with the
 * bytes behind it.
 * As what a client is to ask for, cut at NUL: what is written is one request,
 * which our own server agrees to. */
#include <assert.h>
#include <stdlib.h>

#include "net/server/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SAMPLE "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

enum { MAX_HEADERS = 64, MAX_ANSWER_BYTES = 500 };

static const struct http_limits limits = {
    .max_request_line_bytes = 4096,
    .max_header_bytes = 65536,
    .max_headers = MAX_HEADERS,
    .max_body_bytes = 100,
};

static size_t count(const struct http_request *rq, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < rq->n_headers; i++)
        n += str_eq_nocase(rq->headers[i].name, name);
    return n;
}

static void check_agreed(const struct http_request *rq,
                         const struct ws_hello *hello)
{
    assert(ws_is_asked(rq));
    assert(str_eq(rq->method, STR("GET")) && rq->body.n == 0);
    assert(count(rq, STR("host")) == 1 && count(rq, STR("connection")) > 0);
    assert(count(rq, STR("sec-websocket-key")) == 1);
    assert(count(rq, STR("sec-websocket-version")) == 1);
    assert(http_header(rq, STR("sec-websocket-key")).n == WS_KEY_BYTES);
    assert(strlen(hello->accept) == WS_ACCEPT_BYTES);
    assert((count(rq, STR("sec-websocket-protocol")) > 0) ==
           (hello->protocols.n > 0));
    for (struct str rest = hello->protocols; rest.n;) {
        struct str word = str_trim(str_cut(&rest, ','));

        assert(ws_offers(rq, word) == (word.n > 0));
    }
}

/* Returns whether it is a request that was agreed to. */
static bool judge_request(char *bytes, size_t n)
{
    struct http_header slots[MAX_HEADERS];
    struct http_parse p = {.phase = HTTP_HEAD};
    struct http_request rq;
    struct ws_hello hello;
    struct why why = {""};
    enum err e;

    if (n == 0 || http_parse(&p, &limits, bytes, &n, slots, &rq) != HTTP_DONE)
        return false;
    e = ws_hello_read(&rq, &hello, &why);
    assert(e == OK || e == ERR_BAD_REQUEST || e == ERR_UPGRADE);
    assert((e == OK) == (why.text[0] == '\0'));
    if (e == OK)
        check_agreed(&rq, &hello);
    else
        assert(hello.accept[0] == '\0' && hello.protocols.n == 0);
    return e == OK;
}

static void judge_answer(const char *bytes, size_t n, struct str protocol)
{
    struct ws_answer a, whole;
    enum ws_step step = WS_MORE, of_whole;

    of_whole = ws_answer_read((struct str){bytes, n}, STR(SAMPLE), protocol,
                              MAX_ANSWER_BYTES, &whole);
    for (size_t at = 0; at <= n && step == WS_MORE; at++) {
        char *exact = malloc(at ? at : 1);

        memcpy(exact, bytes, at);
        step = ws_answer_read((struct str){exact, at}, STR(SAMPLE), protocol,
                              MAX_ANSWER_BYTES, &a);
        assert(step != WS_MESSAGE || a.used == at);
        if (step == WS_MESSAGE && a.protocol.n)
            assert(str_eq(a.protocol, protocol));
        free(exact);
    }
    assert(step == of_whole && a.status == whole.status);
    assert(a.what == whole.what && a.used == whole.used);
    assert((step == WS_BAD) == (a.what != NULL));
    assert(step != WS_MORE || n < MAX_ANSWER_BYTES);
    if (step == WS_MESSAGE)
        assert(memmem(bytes, a.used, ACCEPT, WS_ACCEPT_BYTES) && !a.status);
}

static void ask(struct str rest)
{
    struct ws_ask asked = {.key = STR(SAMPLE)};
    struct http_header headers[2];
    struct buf out;
    size_t n_lines = 0;
    enum err e;

    asked.host = str_cut(&rest, '\0');
    asked.target = str_cut(&rest, '\0');
    asked.protocol = str_cut(&rest, '\0');
    asked.headers = headers;
    for (; rest.n && asked.n_headers < 2; asked.n_headers++) {
        headers[asked.n_headers].name = str_cut(&rest, '\0');
        headers[asked.n_headers].value = str_cut(&rest, '\0');
    }
    buf_init(&out, 8000);
    e = ws_ask_write(&out, &asked);
    assert(e == OK || ((e == ERR_USAGE || e == ERR_LIMIT) && out.n == 0));
    for (size_t i = 0; i < out.n; i++)
        n_lines += out.p[i] == '\n';
    assert(e || n_lines == 7 + !!asked.protocol.n + asked.n_headers);
    if (e == OK && asked.target.n + 20 < limits.max_request_line_bytes)
        assert(judge_request(out.p, out.n));
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes;

    if (size < 1)
        return 0;
    bytes = malloc(size);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] % 4 == 0)
        judge_request(bytes, size - 1);
    else if (data[0] % 4 == 1)
        ask((struct str){bytes, size - 1});
    else
        judge_answer(bytes, size - 1, data[0] % 4 == 2 ? STR("") : STR("chat"));
    free(bytes);
    return 0;
}
