#ifndef TAR_STAGE_H
#define TAR_STAGE_H

/* Tar files for tests, good ones and others. Every step is one header or some
 * bytes, so that a test can leave out, add or spoil what it likes. */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "lab/gunzip.h"
#include "test/t.h"

enum { TAR_BLOCK = 512 };

/* A header as it is, its check sum put right. */
static inline void tar_seal(char *block)
{
    unsigned sum = 0;

    memset(block + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
}

/* Returns where it is, for anyone who spoils it; tar_seal then mends the sum.
 */
static inline char *tar_head(struct buf *b, const char *name, char kind,
                             unsigned long long bytes)
{
    char *p = buf_reserve(b, TAR_BLOCK);

    CHECK(p != NULL);
    memset(p, 0, TAR_BLOCK);
    memcpy(p, name, strlen(name) < 100 ? strlen(name) : 100);
    memcpy(p + 100, "0000644", 7);
    snprintf(p + 124, 12, "%011llo", bytes);
    p[156] = kind;
    memcpy(p + 257,
           "ustar\0"
           "00",
           8);
    tar_seal(p);
    buf_commit(b, TAR_BLOCK);
    return p;
}

static inline void tar_body(struct buf *b, struct str bytes)
{
    static const char zeros[TAR_BLOCK];

    buf_add_str(b, bytes);
    buf_add(b, zeros, (TAR_BLOCK - bytes.n % TAR_BLOCK) % TAR_BLOCK);
}

static inline void tar_file(struct buf *b, const char *name, struct str bytes)
{
    tar_head(b, name, '0', bytes.n);
    tar_body(b, bytes);
}

static inline void tar_end(struct buf *b)
{
    static const char zeros[2 * TAR_BLOCK];

    buf_add(b, zeros, sizeof(zeros));
}

/* A pax header with one record. */
static inline void tar_pax(struct buf *b, char kind, const char *key,
                           struct str value)
{
    size_t n = strlen(key) + value.n + 3, digits = 1;
    struct buf record;

    for (size_t most = 10; n + digits >= most; most *= 10)
        digits++;
    buf_init(&record, 1 << 20);
    buf_addf(&record, "%zu %s=", n + digits, key);
    buf_add_str(&record, value);
    buf_add_char(&record, '\n');
    CHECK_INT(record.n, n + digits);
    tar_head(b, "PaxHeader/x", kind, record.n);
    tar_body(b, buf_str(&record));
    buf_fini(&record);
}

static inline void gzip(struct buf *out, struct str bytes)
{
    z_stream z = {.next_in = (const Bytef *)bytes.p, .avail_in = (uInt)bytes.n};
    size_t most;
    char *p;

    CHECK(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8,
                       Z_DEFAULT_STRATEGY) == Z_OK);
    most = deflateBound(&z, z.avail_in);
    p = buf_reserve(out, most);
    CHECK(p != NULL);
    z.next_out = (Bytef *)p;
    z.avail_out = (uInt)most;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    buf_commit(out, z.total_out);
    deflateEnd(&z);
}

#endif
