#ifndef BENCH_TALK_H
#define BENCH_TALK_H

/* talk: what the benches of hubs share: how a connection becomes a WebSocket,
 * or one of NATS, and frames as a client writes and reads them. As little of
 * it as a well-behaved client needs. */

#include "bench/peer.h"

/* Open a WebSocket at that path; token may be NULL. */
static inline void talk_hello(int fd, const struct peer *p, const char *path,
                              const char *token)
{
    char text[1024], in[1024];
    size_t n = 0;

    snprintf(text, sizeof(text),
             "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s%s%s\r\n",
             path, p->port, token ? "Authorization: Bearer " : "",
             token ? token : "", token ? "\r\n" : "");
    peer_send(fd, text, strlen(text));
    while (!memmem(in, n, "\r\n\r\n", 4)) {
        ssize_t got = recv(fd, in + n, sizeof(in) - n, 0);
        if (got <= 0 || (n += (size_t)got) == sizeof(in))
            die("the handshake");
    }
    if (memcmp(in, "HTTP/1.1 101 ", 13) != 0) {
        fprintf(stderr, "%s: %s: %.*s\n", program_invocation_short_name,
                p->name, (int)n, in);
        exit(1);
    }
}

/* Write one frame of text, masked; where the next one begins. */
static inline char *talk_frame(char *to, const char *message, size_t n)
{
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};

    *to++ = (char)0x81;
    if (n < 126) {
        *to++ = (char)(0x80 | n);
    } else {
        *to++ = (char)(0x80 | 126);
        *to++ = (char)(n >> 8);
        *to++ = (char)(n & 255);
    }
    memcpy(to, mask, 4);
    to += 4;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(message[i] ^ (char)mask[i % 4]);
    return to + n;
}

/* The frame at p, which has n bytes: what it holds, and the bytes of it all;
 * zero when it is not whole. */
static inline size_t talk_read(const char *p, size_t n, const char **message,
                               size_t *n_message)
{
    size_t head = 2, size;

    if (n < 2)
        return 0;
    size = (unsigned char)p[1] & 127;
    if (size == 126) {
        head = 4;
        if (n < head)
            return 0;
        size = (size_t)(unsigned char)p[2] << 8 | (unsigned char)p[3];
    } else if (size == 127) {
        head = 10;
        if (n < head)
            return 0;
        for (size = 0, head = 2; head < 10; head++)
            size = size << 8 | (unsigned char)p[head];
    }
    if (n < head + size)
        return 0;
    *message = p + head;
    *n_message = size;
    return head + size;
}

/* NATS. */

/* Wait for the end of what it says first. */
static inline void talk_nats_await_pong(int fd)
{
    char in[4096];
    size_t n = 0;

    while (!memmem(in, n, "PONG\r\n", 6)) {
        ssize_t got = recv(fd, in + n, sizeof(in) - n, 0);
        if (got <= 0 || (n += (size_t)got) == sizeof(in))
            die("nats");
    }
}

/* Listen to that subject. */
static inline void talk_nats_hello(int fd, const char *subject)
{
    char text[512];

    snprintf(text, sizeof(text),
             "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":true}\r\n"
             "SUB %s 1\r\nPING\r\n",
             subject);
    peer_send(fd, text, strlen(text));
    talk_nats_await_pong(fd);
}

/* Its log goes to standard error and says when it is ready. */
static inline struct peer talk_nats_run(void)
{
    struct peer p = {.name = "nats-server"};
    char port[8];
    FILE *f;

    close(peer_listen(&p.port)); /* it cannot tell which one it took */
    snprintf(port, sizeof(port), "%u", p.port);
    setenv("GOMAXPROCS", "1", 1);
    f = peer_start(
        &p,
        (const char *[]){"nats-server", "-a", "127.0.0.1", "-p", port, NULL},
        STDERR_FILENO);
    while (fgets(p.line, sizeof(p.line), f))
        if (strstr(p.line, "Server is ready"))
            return p;
    die("nats-server did not start");
    return p;
}

#endif
