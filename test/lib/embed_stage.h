#ifndef TEST_LIB_EMBED_STAGE_H
#define TEST_LIB_EMBED_STAGE_H

/* The stage on which embed is tested: that of fetch, whose peers are plain
 * sockets, an embed whose provider is the first of them, and owners that write
 * down what they are told. What a good provider answers is a function of the
 * text, so that a vector in the wrong place is seen. */

#include <math.h>

#include "base/json.h"
#include "base/map.h"
#include "embed/http.h"
#include "test/lib/fetch_stage.h"

enum { TEST_DIMS = 8, TEST_TEXTS_MAX = 64 };

/* What an owner was told. */
struct owner {
    uint64_t id;
    int n_done;
    enum err e;
    char why[512];
    struct embed_stamp stamp;
    size_t n;
    float *vectors;

    /* What it does when it is told. */
    struct embed *embed;
    struct owner *cancels, *starts;
};

struct estage {
    struct stage *s;
    struct provider_peer *peer;
    struct embed *embed;
    struct embed_opts opts;
    int n_stopped;
};

/* Vectors. */

static inline void vector_for(struct str text, size_t dims, float *out)
{
    static const uint64_t seed[2] = {3, 4};
    uint64_t h = hash_bytes(text, seed);

    for (size_t i = 0; i < dims; i++) {
        h = h * 6364136223846793005 + 1442695040888963407;
        out[i] = (float)((int64_t)(h >> 40) - (1 << 23)) / (1 << 20);
    }
    CHECK(vec_normalise(out, dims));
}

static inline bool is_vector_of(const float *v, size_t dims, const char *text)
{
    float wanted[EMBED_DIMS_MAX];

    vector_for(str_of(text), dims, wanted);
    for (size_t i = 0; i < dims; i++)
        if (fabsf(v[i] - wanted[i]) > 1e-5F)
            return false;
    return true;
}

/* Owners. */

static inline void owner_done(void *ctx, uint64_t id, enum err e,
                              const struct embed_result *r,
                              const struct why *why)
{
    struct owner *o = ctx;
    size_t bytes;

    CHECK(!o->n_done && o->id == id);
    o->n_done++;
    o->e = e;
    CHECK(!e == (r != NULL));
    CHECK(!e || why->text[0]);
    snprintf(o->why, sizeof(o->why), "%s", why->text);
    if (r) {
        o->stamp = r->stamp;
        o->n = r->n;
        bytes = r->n * r->stamp.dims * sizeof(float);
        o->vectors = malloc(bytes + 1);
        CHECK(o->vectors);
        if (bytes)
            memcpy(o->vectors, r->vectors, bytes);
    }
    if (o->cancels)
        embed_cancel(o->embed, o->cancels->id);
    if (o->starts) {
        struct str text = STR("one more");

        CHECK(embed_start(o->embed, &text, 1, EMBED_QUERY, owner_done,
                          o->starts, &o->starts->id, NULL) == OK);
        CHECK(!o->starts->n_done);
    }
}

static inline void owner_free(struct owner *o)
{
    free(o->vectors);
    free(o);
}

/* NULL-terminated texts. Returns NULL when it was not begun; *e says why. */
static inline struct owner *try_start(struct embed *embed, enum embed_use use,
                                      const char *const *texts, enum err *e,
                                      struct why *why)
{
    struct owner *o = calloc(1, sizeof(*o));
    struct str list[TEST_TEXTS_MAX];
    size_t n = 0;

    CHECK(o);
    for (; texts[n]; n++) {
        CHECK(n < TEST_TEXTS_MAX);
        list[n] = str_of(texts[n]);
    }
    o->embed = embed;
    *e = embed_start(embed, list, n, use, owner_done, o, &o->id, why);
    CHECK(!o->n_done);
    if (!*e)
        return o;
    free(o);
    return NULL;
}

static inline struct owner *start_texts(struct embed *embed, enum embed_use use,
                                        const char *const *texts)
{
    struct why why = {""};
    enum err e;
    struct owner *o = try_start(embed, use, texts, &e, &why);

    if (!o)
        T_FAIL("not begun: %s", why.text);
    return o;
}

#define TEXTS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define ASK(st, ...) start_texts((st)->embed, EMBED_QUERY, TEXTS(__VA_ARGS__))
#define TELL(st, ...) \
    start_texts((st)->embed, EMBED_DOCUMENT, TEXTS(__VA_ARGS__))

/* The provider: a socket of this process, and a function that answers. Without
 * one, the test does it. */

enum { SEATS_MAX = 32 };

struct seat {
    int fd;
    struct buf heard, request, out;
    bool is_waiting; /* for an answer to `request`, a body */
    struct str body; /* of it, in request */
};

struct provider_peer {
    int fd;
    uint16_t port;
    struct seat seats[SEATS_MAX];
    int n_seats, n_asked;
    struct buf heads; /* of all requests */
    size_t dims;
    size_t largest; /* texts in a request */
    void (*respond)(struct provider_peer *p, struct seat *s);
};

static inline void peer_start(struct provider_peer *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};

    p->fd = listen_at((struct sockaddr *)&a, sizeof(a), &p->port);
    buf_init_roomy(&p->heads, 16 << 20);
    p->dims = TEST_DIMS;
}

static inline void seat_close(struct seat *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->is_waiting = false;
}

static inline void peer_end(struct provider_peer *p)
{
    for (int i = 0; i < p->n_seats; i++) {
        seat_close(&p->seats[i]);
        buf_fini(&p->seats[i].heard);
        buf_fini(&p->seats[i].request);
        buf_fini(&p->seats[i].out);
    }
    buf_fini(&p->heads);
    close(p->fd);
}

static inline void say_bytes(struct seat *s, struct str bytes)
{
    s->is_waiting = false;
    buf_add_str(&s->out, bytes);
    CHECK(!s->out.over);
}

static inline void say(struct seat *s, int status, const char *headers,
                       struct str body)
{
    s->is_waiting = false;
    buf_addf(&s->out, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", status,
             headers, body.n);
    buf_add_str(&s->out, body);
    CHECK(!s->out.over);
}

static inline void say_text(struct seat *s, int status, const char *body)
{
    say(s, status, "", str_of(body));
}

/* One element of "data". */
static inline void add_element(struct buf *out, const char *comma, size_t index,
                               const float *v, size_t dims)
{
    struct json_out o = json_out(out);

    buf_addf(out,
             "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", comma,
             index);
    json_open(&o, '[');
    for (size_t i = 0; i < dims; i++)
        json_put_real(&o, (double)v[i]);
    json_close(&o, ']');
    buf_addf(out, "}");
}

/* The texts of a request, in the arena. */
static inline struct json *input_of(struct arena *a, const struct seat *s)
{
    struct json *root = json_parse(a, s->body, 0, NULL), *input;

    if (!root) /* an armed fault that met us: it fires once */
        root = json_parse(a, s->body, 0, NULL);
    input = json_get(root, STR("input"));
    CHECK(input && input->type == JSON_ARR && input->kids.n);
    return input;
}

/* As a good provider does, but the last vector first. */
static inline void respond_well(struct provider_peer *p, struct seat *s)
{
    struct arena arena;
    struct json *input;
    struct buf out;

    arena_init(&arena, 64 << 20);
    buf_init_roomy(&out, 64 << 20);
    input = input_of(&arena, s);
    if (input->kids.n > p->largest)
        p->largest = input->kids.n;
    buf_addf(&out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = input->kids.n; i-- > 0;) {
        float v[EMBED_DIMS_MAX];

        vector_for(json_at(input, i)->s, p->dims, v);
        for (size_t k = 0; k < p->dims; k++)
            v[k] *= 3; /* making it one long is ours to do */
        add_element(&out, i + 1 < input->kids.n ? "," : "", i, v, p->dims);
    }
    buf_addf(&out, "],\"model\":\"m\",\"usage\":{\"prompt_tokens\":1}}");
    say(s, 200, "Content-Type: application/json\r\n", buf_str(&out));
    buf_fini(&out);
    arena_fini(&arena);
}

/* Anyone who waits for an answer, the earliest connection first; NULL: no one.
 */
static inline struct seat *waiting_seat(struct provider_peer *p)
{
    for (int i = 0; i < p->n_seats; i++)
        if (p->seats[i].is_waiting)
            return &p->seats[i];
    return NULL;
}

static inline int n_waiting_seats(const struct provider_peer *p)
{
    int n = 0;

    for (int i = 0; i < p->n_seats; i++)
        n += p->seats[i].is_waiting;
    return n;
}

static inline bool seat_heard(const struct seat *s, const char *text)
{
    return s->body.n &&
           memmem(s->body.p, s->body.n, text, strlen(text)) != NULL;
}

static inline void take_request(struct provider_peer *p, struct seat *s)
{
    size_t n = request_bytes(&s->heard);
    const char *end;

    if (!n || s->is_waiting)
        return;
    buf_clear(&s->request);
    buf_add(&s->request, s->heard.p, n);
    buf_drop(&s->heard, n);
    end = memmem(s->request.p, n, "\r\n\r\n", 4);
    s->body =
        str_sub(buf_str(&s->request), (size_t)(end + 4 - s->request.p), n);
    buf_add(&p->heads, s->request.p, (size_t)(end - s->request.p));
    s->is_waiting = true;
    p->n_asked++;
    if (p->respond)
        p->respond(p, s);
}

static inline void seat_step(struct provider_peer *p, struct seat *s)
{
    char bytes[65536];
    ssize_t n = 1;

    while (s->fd >= 0 && n > 0) {
        n = recv(s->fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            buf_add(&s->heard, bytes, (size_t)n);
    }
    if (n == 0)
        seat_close(s);
    take_request(p, s);
    while (s->fd >= 0 && s->out.n) {
        n = send(s->fd, s->out.p, s->out.n, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        buf_drop(&s->out, (size_t)n);
    }
}

static inline void provider_step(struct provider_peer *p)
{
    int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        struct seat *s = &p->seats[p->n_seats++];

        CHECK(p->n_seats <= SEATS_MAX);
        *s = (struct seat){.fd = fd};
        buf_init_roomy(&s->heard, 64 << 20);
        buf_init_roomy(&s->request, 64 << 20);
        buf_init_roomy(&s->out, 256 << 20);
    }
    for (int i = 0; i < p->n_seats; i++)
        seat_step(p, &p->seats[i]);
}

/* The stage. */

static inline void eturn(struct estage *st)
{
    turn_once(st->s);
    if (st->peer)
        provider_step(st->peer);
}

static inline void eturns(struct estage *st, int n)
{
    while (n-- > 0)
        eturn(st);
}

/* As UNTIL. */
#define AWAIT(st, condition)                     \
    do {                                         \
        int t_left = TURNS_MAX;                  \
        while (!(condition) && t_left-- > 0) {   \
            eturn(st);                           \
            if (!(condition) && t_left % 4 == 0) \
                wait_a_little((st)->s);          \
        }                                        \
        CHECK(condition);                        \
    } while (0)

static inline void elater(struct estage *st, int64_t ms)
{
    st->s->ahead_ms += ms;
    eturns(st, 4);
}

static inline struct embed_opts embed_test_opts(const struct provider_peer *p)
{
    static char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/embeddings",
             p ? p->port : 1);
    return (struct embed_opts){
        .kind = EMBED_HTTP,
        .http =
            {
                .url = str_of(url),
                .model = STR("small \"one\""),
                .key = STR("sk-secret-1234"),
                .batch = 4,
                .max_requests = 2,
                .max_text_bytes = 100,
                .max_answer_bytes = 1 << 20,
                .timeout_ms = 100 * 1000,
                .breaker_failures = 3,
                .breaker_pause_ms = 500 * 1000,
            },
        .cache_entries = 16,
        .max_waiting = 64,
        .max_waiting_bytes = 1 << 20,
        .timeout_ms = 3600 * 1000,
        .seed = {1, 2},
    };
}

static inline struct estage *estage_begin(void)
{
    struct estage *st = calloc(1, sizeof(*st));

    CHECK(st);
    st->s = stage_new(test_opts());
    /* Its own is trusted: nothing else may be reached. */
    stage_allow(st->s, NULL);
    st->peer = calloc(1, sizeof(*st->peer));
    CHECK(st->peer);
    peer_start(st->peer);
    st->peer->respond = respond_well;
    st->opts = embed_test_opts(st->peer);
    return st;
}

static inline void estage_open(struct estage *st)
{
    struct why why = {""};

    if (embed_new(&st->embed, &st->s->loop, &st->s->log, st->s->fetch,
                  &st->opts, &why))
        T_FAIL("%s", why.text);
}

static inline struct estage *estage_new(void)
{
    struct estage *st = estage_begin();

    estage_open(st);
    return st;
}

/* What was logged, until the next call. */
static inline const char *log_text(const struct estage *st)
{
    static char text[65536];
    ssize_t n = pread(st->s->log.fd, text, sizeof(text) - 1, 0);

    CHECK(n >= 0 && n < (ssize_t)sizeof(text) - 1);
    text[n] = '\0';
    return text;
}

static inline void estage_stopped(void *ctx)
{
    ((struct estage *)ctx)->n_stopped++;
}

static inline void estage_free(struct estage *st)
{
    if (st->embed && !st->n_stopped) {
        embed_stop(st->embed, estage_stopped, st);
        CHECK(!st->n_stopped);
        AWAIT(st, st->n_stopped == 1);
        CHECK(embed_stats(st->embed).waiting == 0);
    }
    embed_free(st->embed);
    stage_free(st->s);
    peer_end(st->peer);
    free(st->peer);
    free(st);
}

#endif
