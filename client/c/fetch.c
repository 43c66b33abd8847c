/* A plain request to the server, on a connection of its own that is over with
 * the answer: HTTP/1.0, so that the answer ends with the connection and is in
 * one piece. Waits; for what is asked for once, not for what is asked often. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { READ_MOST = 256 * 1024, PATH_ROOM = 128 };

static int left_of(int64_t end_ms)
{
    int64_t left = end_ms - sbc_now_ms();

    return left > 0 ? (int)left : 0;
}

/* A socket that is connected, -1 if none could be. */
static int dial(const struct sbc *s, int64_t end_ms)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV};
    struct addrinfo *all = NULL;
    int fd = -1;

    if (FAULT("sbc.lookup") || getaddrinfo(s->host, s->port, &hints, &all) != 0)
        return -1;
    for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
        struct pollfd p = {.events = POLLOUT};
        int e = 0;
        socklen_t n = sizeof(e);

        fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    a->ai_protocol);
        if (fd < 0)
            continue;
        p.fd = fd;
        if ((connect(fd, a->ai_addr, a->ai_addrlen) != 0 &&
             errno != EINPROGRESS) ||
            poll(&p, 1, left_of(end_ms)) != 1 ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) != 0 || e != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(all);
    return fd;
}

/* "/x/hub?a=1" and "/api/tools" are "/x/api/tools". */
static bool put_request(const struct sbc *s, struct str path, struct buf *out)
{
    struct str target = str_sub(s->target, 0, str_find(s->target, '?', 0));

    if (target.n >= 4 &&
        str_eq(str_sub(target, target.n - 4, target.n), STR("/hub")))
        target = str_sub(target, 0, target.n - 4);
    buf_add_str(out, STR("GET "));
    buf_add_str(out, target);
    buf_add_str(out, path);
    buf_add_str(out, STR(" HTTP/1.0\r\nHost: "));
    buf_add_str(out, s->url.authority);
    if (s->token.n) {
        buf_add_str(out, STR("\r\nAuthorization: Bearer "));
        buf_add_str(out, s->token);
    }
    buf_add_str(out, STR("\r\n\r\n"));
    return !out->over;
}

/* Say it and read until the other side has closed. */
static bool converse(struct sbc_pipe *p, int64_t end_ms, const char **why)
{
    for (;;) {
        struct pollfd f = {.fd = p->fd, .events = POLLIN};

        if (!sbc_pipe_write(p, why))
            return false;
        if (sbc_pipe_wants_write(p))
            f.events |= POLLOUT;
        if (poll(&f, 1, left_of(end_ms)) != 1) {
            *why = "no answer came in time";
            return false;
        }
        if (f.revents & ~POLLOUT && !sbc_pipe_read(p, READ_MOST, why))
            return p->in.n > 0;
    }
}

/* The body of an answer that is a good one. */
static char *body_of(struct sbc *s, struct str bytes)
{
    const char *end = memmem(bytes.p, bytes.n, "\r\n\r\n", 4);
    char words[SBC_WHY_BYTES / 2];
    char *body;

    if (!end || bytes.n < 12 || memcmp(bytes.p + 8, " 200", 4) != 0) {
        if (!sbc_refusal_read(bytes, words, sizeof(words)))
            snprintf(words, sizeof(words), "no such answer was expected: %.*s",
                     STR_ARG(str_head(bytes, 12)));
        (void)sbc_err_of(s, SBC_ANSWER, "%s", words);
        sbc_set_code(s, "refused");
        return NULL;
    }
    bytes = str_sub(bytes, (size_t)(end - bytes.p) + 4, bytes.n);
    while (bytes.n && bytes.p[bytes.n - 1] == '\n')
        bytes.n--;
    body = sbc_dup(bytes);
    if (!body || json_check(str_of(body), NULL) != OK) {
        (void)sbc_err_of(s, SBC_ANSWER, "no memory, or an answer cut short");
        free(body);
        return NULL;
    }
    return body;
}

char *sbc_tools(struct sbc *s, const char *format)
{
    int64_t end_ms = sbc_now_ms() + SBC_CALL_MS;
    const char *why = "it cannot be connected to";
    struct sbc_pipe pipe;
    char path[PATH_ROOM], *body = NULL;
    bool is_address =
        s->url.is_v6 || strspn(s->host, "0123456789.") == strlen(s->host);

    if (format &&
        strspn(format, "abcdefghijklmnopqrstuvwxyz") != strlen(format)) {
        (void)sbc_err_of(s, SBC_USAGE, "a format is openai or anthropic");
        return NULL;
    }
    snprintf(path, sizeof(path), "/api/tools%s%.100s", format ? "?format=" : "",
             format ? format : "");
    sbc_pipe_init(&pipe);
    pipe.fd = dial(s, end_ms);
    pipe.is_ready = !s->url.is_tls;
    if (pipe.fd >= 0 &&
        (!s->url.is_tls ||
         sbc_pipe_secure(&pipe, s->tls, s->host, is_address)) &&
        put_request(s, str_of(path), &pipe.out) &&
        converse(&pipe, end_ms, &why)) {
        body = body_of(s, buf_str(&pipe.in));
    } else {
        (void)sbc_err_of(s, SBC_OFFLINE, "cannot reach %.*s: %s",
                         STR_ARG(s->url.authority), why);
        sbc_set_code(s, "unreachable");
    }
    sbc_pipe_fini(&pipe);
    return body;
}
