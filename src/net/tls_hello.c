/* The lengths that a client's handshake announces, read along with OpenSSL,
 * which makes room for a hello of 128 KB as soon as one says that it is so
 * long. A header may come in crumbs, one byte to a record, and there are two
 * hellos where the server asks for another: so every record is followed, and
 * in those of handshakes every message. What is encrypted has another type, in
 * TLS 1.3; in 1.2 nobody looks any more by then. */
#include "net/internal.h"

enum { RECORD_HEAD_BYTES = 5, MESSAGE_HEAD_BYTES = 4, HANDSHAKE = 22 };

static void read_record_head(struct tls_hello *h, uint8_t byte)
{
    if (h->n_record_head == 0)
        h->type = byte;
    else if (h->n_record_head >= 3)
        h->record_left = (uint16_t)(h->record_left << 8 | byte);
    h->n_record_head++;
}

/* Byte by byte the message's type, then its length. */
static void read_message_head(struct tls_hello *h, uint8_t byte)
{
    h->message_left = h->n_message_head ? h->message_left << 8 | byte : 0;
    h->n_message_head++;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Go on in a record; returns by how much. */
static size_t read_record(struct tls_hello *h, const uint8_t *p, size_t n)
{
    size_t n_read = least(n, h->record_left);

    if (h->type == HANDSHAKE && h->n_message_head < MESSAGE_HEAD_BYTES) {
        read_message_head(h, *p);
        n_read = 1;
    } else if (h->type == HANDSHAKE) {
        n_read = least(n_read, h->message_left);
        h->message_left -= (uint32_t)n_read;
    }
    if (h->n_message_head == MESSAGE_HEAD_BYTES && h->message_left == 0)
        h->n_message_head = 0;
    h->record_left = (uint16_t)(h->record_left - n_read);
    return n_read;
}

bool tls_hello_is_short(struct tls_hello *h, const char *bytes, size_t n)
{
    const uint8_t *p = (const uint8_t *)bytes, *end = p + n;

    while (p < end) {
        if (h->n_record_head < RECORD_HEAD_BYTES)
            read_record_head(h, *p++);
        else
            p += read_record(h, p, (size_t)(end - p));
        if (h->n_record_head == RECORD_HEAD_BYTES && h->record_left == 0)
            h->n_record_head = 0;
        if (h->n_message_head == MESSAGE_HEAD_BYTES &&
            h->message_left > TLS_HELLO_BYTES)
            return false;
    }
    return true;
}
