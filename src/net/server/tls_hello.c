/* The lengths that a client's handshake announces. They are read along with
 * OpenSSL, which allocates 128 KB for a hello as soon as one announces that
 * length. A header may come byte by byte in separate records, and there are
 * two hellos if the server asks for another. So every record is followed, and
 * every message in handshake records. In TLS 1.3 encrypted records have
 * another type; in TLS 1.2 this check has ended by then. */
#include "net/server/internal.h"

enum { RECORD_HEAD_BYTES = 5, MESSAGE_HEAD_BYTES = 4, HANDSHAKE = 22 };

static void hello_read_record_head(struct tls_hello *h, uint8_t byte)
{
    if (h->n_record_head == 0)
        h->type = byte;
    else if (h->n_record_head >= 3)
        h->record_left = (uint16_t)(h->record_left << 8 | byte);
    h->n_record_head++;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Continue in a record; returns the number of bytes used. */
static size_t hello_read_record(struct tls_hello *h, const uint8_t *p, size_t n)
{
    size_t n_read = min_size(n, h->record_left);

    if (h->type == HANDSHAKE && h->n_message_head < MESSAGE_HEAD_BYTES) {
        /* Byte by byte: the message's type, then its length. */
        h->message_left = h->n_message_head ? h->message_left << 8 | *p : 0;
        h->n_message_head++;
        n_read = 1;
    } else if (h->type == HANDSHAKE) {
        n_read = min_size(n_read, h->message_left);
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
            hello_read_record_head(h, *p++);
        else
            p += hello_read_record(h, p, (size_t)(end - p));
        if (h->n_record_head == RECORD_HEAD_BYTES && h->record_left == 0)
            h->n_record_head = 0;
        if (h->n_message_head == MESSAGE_HEAD_BYTES &&
            h->message_left > TLS_HELLO_BYTES)
            return false;
    }
    return true;
}
