/* The program around the two sides: options, the loop, signals. */
#include "test/peers/ws_peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 64 << 20, STOP_MS = 5000 };

static const struct arg_option options[] = {
    {"listen", "ADDRESS", "where to listen", false},
    {"tls-listen", "ADDRESS", "where to listen with TLS", false},
    {"cert", "FILE", "the certificate of that", false},
    {"key", "FILE", "and its key", false},
    {"max-frame", "N", "ws_max_frame_bytes", false},
    {"max-message", "N", "ws_max_message_bytes", false},
    {"max-unsent", "N", "max_unsent_bytes", false},
    {"max-buffered", "N", "max_buffered_bytes", false},
    {"max-connections", "N", "max_connections", false},
    {"timeout-ms", "N", "ws_timeout_ms; of a dial its timeout too", false},
    {"close-timeout-ms", "N", "ws_close_timeout_ms", false},
    {"write-timeout-ms", "N", "write_timeout_ms", false},
    {"ca", "FILE", "certificates to trust when dialling", false},
    {"protocol", "NAME", "the subprotocol to ask for", false},
    {"header", "NAME:VALUE", "one more header to dial with", false},
    {"expect", "N", "messages to wait for after the end of stdin", false},
    {"guard", NULL, "refuse inward addresses", false},
    {0},
};
static const struct arg_option none[] = {{0}};

/* What is said for a number, or what it is by default. */
int64_t peer_number(const struct args *a, const char *name, int64_t preset)
{
    int64_t v = preset;

    if (args_has(a, name) && str_to_i64(args_get(a, name), &v) != OK) {
        fprintf(stderr, "ws_peer: --%s wants a number\n", name);
        exit(EXIT_USAGE);
    }
    return v;
}

static struct net_opts opts_of(const struct args *a)
{
    return (struct net_opts){
        .max_connections = (size_t)peer_number(a, "max-connections", 20000),
        .max_request_line_bytes = 8192,
        .max_header_bytes = 16384,
        .max_headers = 100,
        .max_body_bytes = 65536,
        .max_unsent_bytes = (size_t)peer_number(a, "max-unsent", 1 << 20),
        .max_buffered_bytes = (size_t)peer_number(a, "max-buffered", 256 << 20),
        .header_timeout_ms = 10000,
        .body_timeout_ms = 10000,
        .idle_timeout_ms = 75000,
        .reply_timeout_ms = 10000,
        .write_timeout_ms = peer_number(a, "write-timeout-ms", 30000),
        .ws_max_frame_bytes = (size_t)peer_number(a, "max-frame", 1 << 20),
        .ws_max_message_bytes = (size_t)peer_number(a, "max-message", 2 << 20),
        .ws_timeout_ms = peer_number(a, "timeout-ms", 90000),
        .ws_close_timeout_ms = peer_number(a, "close-timeout-ms", 5000),
    };
}

void held_send(struct peer *p, struct held *h, uint64_t from, uint64_t to,
               enum ws_kind kind, struct str bytes)
{
    if (net_ws_send(p->net, to, kind, bytes) != ERR_BUSY)
        return;
    h->bytes.limit = MESSAGE_BYTES;
    buf_clear(&h->bytes);
    buf_add_str(&h->bytes, bytes);
    h->kind = kind;
    h->is_held = true;
    net_ws_pause(p->net, from, true);
}

void held_go_on(struct peer *p, struct held *h, uint64_t from, uint64_t to)
{
    if (!h->is_held ||
        net_ws_send(p->net, to, h->kind, buf_str(&h->bytes)) == ERR_BUSY)
        return;
    h->is_held = false;
    buf_fini(&h->bytes);
    net_ws_pause(p->net, from, false);
}

static void on_stopped(void *ctx)
{
    struct peer *p = ctx;

    p->has_stopped = true;
    loop_stop(&p->loop);
}

void peer_stop(struct peer *p)
{
    net_stop(p->net, STOP_MS, on_stopped, p);
}

static void on_signal(uv_signal_t *h, int number_of_it)
{
    (void)number_of_it;
    peer_stop(h->data);
}

static void watch_signal(struct peer *p, uv_signal_t *h, int which)
{
    uv_signal_init(&p->loop.uv, h);
    h->data = p;
    uv_signal_start(h, on_signal, which);
    uv_unref((uv_handle_t *)h);
}

static int run(struct peer *p, const struct args *a, const char *command)
{
    struct net_opts opts = opts_of(a);
    struct net_handler h = serve_handler;
    int status;

    h.ctx = p;
    if (loop_init(&p->loop, clock_system()) != OK)
        return EXIT_FAILED;
    log_init(&p->log, STDERR_FILENO, LOG_WARN, LOG_AUTO, clock_system());
    p->net = net_new(&p->loop, &p->log, &opts, &h);
    if (!p->net)
        return EXIT_FAILED;
    watch_signal(p, &p->on_term, SIGTERM);
    watch_signal(p, &p->on_int, SIGINT);
    if (strcmp(command, "serve") == 0)
        status = peer_serve(p, a);
    else
        status = peer_dial(p, a, strcmp(command, "dial-echo") == 0);
    if (!p->has_stopped) { /* it did not even begin */
        peer_stop(p);
        loop_run(&p->loop);
    }
    net_free(p->net);
    uv_close((uv_handle_t *)&p->on_term, NULL);
    uv_close((uv_handle_t *)&p->on_int, NULL);
    loop_fini(&p->loop);
    return status;
}

int main(int argc, char **argv)
{
    struct peer p = {.status = EXIT_DONE};
    struct args a;
    struct why why;
    const char *command = argc > 1 ? argv[1] : "";
    bool serves = strcmp(command, "serve") == 0;

    signal(SIGPIPE, SIG_IGN);
    if (!serves && strcmp(command, "dial") != 0 &&
        strcmp(command, "dial-echo") != 0) {
        fprintf(stderr, "usage: ws_peer serve|dial|dial-echo [URL] ...\n");
        return EXIT_USAGE;
    }
    if (args_parse(&a, options, none, 1, (size_t)argc - 2, argv + 2, &why) !=
            OK ||
        a.n_operands != !serves) {
        fprintf(stderr, "ws_peer: %s\n",
                a.n_operands ? "too many or too few words" : why.text);
        return EXIT_USAGE;
    }
    return run(&p, &a, command);
}
