/* The client: lines of stdin go out as messages, events come out as JSON. */
#include "test/peers/ws_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"

enum { LINE_BYTES = 64 << 20, EVENT_BYTES = 512 << 20, DIAL_MS = 10000 };

struct caller {
    struct peer *peer;
    uint64_t id;
    bool echoes;
    struct held held;
    uv_pipe_t in;
    bool is_in_open, is_in_over;
    int64_t n_messages, n_expected;
    struct buf lines; /* of stdin, not sent yet */
    char chunk[65536];
};

static void print_event(struct buf *b)
{
    buf_add_char(b, '\n');
    fwrite(b->p, 1, b->n, stdout);
    fflush(stdout);
    buf_fini(b);
}

static struct json_out begin_event(struct buf *b, const char *what)
{
    struct json_out o;

    buf_init(b, EVENT_BYTES);
    o = json_out(b);
    json_open(&o, '{');
    json_member_text(&o, "event", str_of(what));
    return o;
}

/* Lines of stdin. */

static void close_in(struct caller *c)
{
    if (c->is_in_open)
        uv_close((uv_handle_t *)&c->in, NULL);
    c->is_in_open = false;
}

/* All that are whole, as far as they are taken; at its end say goodbye. */
static void send_lines(struct caller *c)
{
    struct str rest = buf_str(&c->lines);
    enum err e = OK;

    while (str_find(rest, '\n', 0) < rest.n) {
        struct str left = rest, line = str_cut(&left, '\n');

        e = net_ws_send(c->peer->net, c->id, WS_TEXT, line);
        if (e)
            break;
        rest = left;
    }
    buf_drop(&c->lines, c->lines.n - rest.n);
    if (c->is_in_over && !e && c->n_messages >= c->n_expected)
        net_ws_close(c->peer->net, c->id, WS_NORMAL, STR(""));
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
    struct caller *c = LIST_OF(h, struct caller, in);

    (void)hint;
    *out = uv_buf_init(c->chunk, sizeof(c->chunk));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct caller *c = LIST_OF(s, struct caller, in);

    if (n > 0)
        buf_add(&c->lines, b->base, (size_t)n);
    else if (n < 0)
        c->is_in_over = true;
    if (c->is_in_over)
        close_in(c);
    send_lines(c);
}

/* A file cannot be waited for and need not be. */
static void read_file(struct caller *c)
{
    ssize_t n;

    while ((n = read(STDIN_FILENO, c->chunk, sizeof(c->chunk))) > 0)
        buf_add(&c->lines, c->chunk, (size_t)n);
    c->is_in_over = true;
    send_lines(c);
}

static void read_lines(struct caller *c)
{
    buf_init(&c->lines, LINE_BYTES);
    if (uv_guess_handle(STDIN_FILENO) != UV_NAMED_PIPE) {
        read_file(c);
        return;
    }
    uv_pipe_init(&c->peer->loop.uv, &c->in, 0);
    uv_pipe_open(&c->in, STDIN_FILENO);
    c->is_in_open = true;
    uv_read_start((uv_stream_t *)&c->in, on_alloc, on_read);
}

/* Events. */

static void on_open(void *ctx, uint64_t id, struct str protocol)
{
    struct caller *c = ctx;
    struct buf b;
    struct json_out o = begin_event(&b, "open");

    c->id = id;
    json_member_text(&o, "protocol", protocol);
    json_close(&o, '}');
    print_event(&b);
    if (!c->echoes)
        read_lines(c);
}

static void put_hex(struct json_out *o, struct str bytes)
{
    struct buf hex;

    buf_init(&hex, EVENT_BYTES);
    for (size_t i = 0; i < bytes.n; i++)
        buf_addf(&hex, "%02x", (unsigned char)bytes.p[i]);
    json_member_text(o, "hex", buf_str(&hex));
    buf_fini(&hex);
}

static void on_message(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes)
{
    struct caller *c = ctx;
    struct buf b;
    struct json_out o;

    if (c->echoes) {
        held_send(c->peer, &c->held, id, id, kind, bytes);
        return;
    }
    o = begin_event(&b, "message");
    json_member_text(&o, "kind", kind == WS_TEXT ? STR("text") : STR("binary"));
    if (kind == WS_TEXT)
        json_member_text(&o, "text", bytes);
    else
        put_hex(&o, bytes);
    json_close(&o, '}');
    print_event(&b);
    if (++c->n_messages == c->n_expected)
        send_lines(c);
}

static void on_room(void *ctx, uint64_t id)
{
    struct caller *c = ctx;

    if (c->echoes)
        held_go_on(c->peer, &c->held, id, id);
    else
        send_lines(c);
}

static void on_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct caller *c = ctx;
    struct buf b;
    struct json_out o = begin_event(&b, "end");

    (void)id;
    json_member_int(&o, "code", end->code);
    json_member_text(&o, "reason", end->reason);
    json_member_bool(&o, "isOurs", end->is_ours);
    json_key(&o, STR("error"));
    if (end->e)
        json_put_str(&o, str_of(err_row(end->e)->code));
    else
        json_put_null(&o);
    json_close(&o, '}');
    print_event(&b);
    close_in(c);
    c->peer->status = end->e ? EXIT_UNREACHABLE : EXIT_DONE;
    peer_stop(c->peer);
}

static const struct net_ws_handler caller_handler = {.on_open = on_open,
                                                     .on_message = on_message,
                                                     .on_room = on_room,
                                                     .on_end = on_end};

int peer_dial(struct peer *p, const struct args *a, bool echoes)
{
    static const struct guard public_only = {NULL, 0};
    struct caller *c = calloc(1, sizeof(*c));
    struct str text = args_get(a, "header"), name = str_cut(&text, ':');
    const struct http_header header = {name, str_trim(text)};
    char ca[4096];
    struct net_dial d = {
        .url = a->operands[0],
        .headers = &header,
        .n_headers = args_has(a, "header"),
        .protocol = args_get(a, "protocol"),
        .guard = args_has(a, "guard") ? &public_only : NULL,
        .timeout_ms = peer_number(a, "timeout-ms", DIAL_MS),
    };
    struct why why;

    if (!c)
        abort();
    snprintf(ca, sizeof(ca), "%.*s", STR_ARG(args_get(a, "ca")));
    if (args_has(a, "ca"))
        d.ca_file = ca;
    c->peer = p;
    c->echoes = echoes;
    c->n_expected = peer_number(a, "expect", 0);
    if (net_ws_dial(p->net, &d, &caller_handler, c, &c->id, &why) != OK) {
        fprintf(stderr, "ws_peer: %s\n", why.text);
        p->status = EXIT_USAGE;
    } else {
        loop_run(&p->loop);
    }
    buf_fini(&c->lines);
    buf_fini(&c->held.bytes);
    free(c);
    return p->status;
}
