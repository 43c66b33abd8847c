/* Each row is a part of a message of OpenSSL or libcurl; the first match
 * decides. */
#include "cli/trust.h"

#include <stddef.h>
#include <string.h>

struct row {
    const char *piece;
    int means;
};

static int trust_find_row(const struct row *rows, size_t n, const char *said,
                          int other)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(said, rows[i].piece))
            return rows[i].means;
    return other;
}

enum trust trust_of(const char *said)
{
    static const struct row rows[] = {
        {"has expired", TRUST_ENDED},
        {"not yet valid", TRUST_EARLY},
        {"subject name", TRUST_NAME},
        {"common name", TRUST_NAME},
    };

    return (enum trust)trust_find_row(rows, sizeof(rows) / sizeof(rows[0]),
                                      said, TRUST_SIGNER);
}

enum handshake handshake_of(const char *said)
{
    static const struct row rows[] = {
        {"wrong version number", HANDSHAKE_PLAIN},
        {"http request", HANDSHAKE_PLAIN},
        {"reset by peer", HANDSHAKE_CUT},
        {"SSL_ERROR_SYSCALL", HANDSHAKE_CUT},
        {"unexpected eof", HANDSHAKE_CUT},
        {"broken pipe", HANDSHAKE_CUT},
    };

    return (enum handshake)trust_find_row(rows, sizeof(rows) / sizeof(rows[0]),
                                          said, HANDSHAKE_OTHER);
}
