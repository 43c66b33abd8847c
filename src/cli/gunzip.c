/* zlib does the work. It is told to expect a gzip header: by itself it would
 * take other wrappings, too, and the words for what is none would be its own.
 */
#include "cli/gunzip.h"

#include "base/fault.h"

enum { PIECE_BYTES = 64 * 1024, GZIP_ONLY = 16 };

enum err gunzip_init(struct gunzip *g, uint64_t max_bytes, gunzip_fn *give,
                     void *ctx)
{
    *g = (struct gunzip){.max_bytes = max_bytes, .give = give, .ctx = ctx};
    if (FAULT("gunzip.init") ||
        inflateInit2(&g->z, MAX_WBITS + GZIP_ONLY) != Z_OK)
        return ERR_NOMEM;
    inflateGetHeader(&g->z, &g->head);
    return OK;
}

void gunzip_fini(struct gunzip *g)
{
    inflateEnd(&g->z);
}

static enum err broken(const struct gunzip *g, int code, struct why *why)
{
    if (code == Z_MEM_ERROR)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (g->head.done != 1)
        return why_err(why, ERR_BAD_REQUEST, "this is no gzip file");
    return why_err(why, ERR_BAD_REQUEST, "the gzip file is broken: %s",
                   g->z.msg ? g->z.msg : "its compressed bytes are damaged");
}

static enum err give(struct gunzip *g, struct str piece, struct why *why)
{
    if (!piece.n)
        return OK;
    if (piece.n > g->max_bytes - g->bytes)
        return why_err(why, ERR_LIMIT,
                       "more comes out of the gzip file than the %llu bytes "
                       "that may",
                       (unsigned long long)g->max_bytes);
    g->bytes += piece.n;
    return g->give(g->ctx, piece, why);
}

/* As much as fits in one piece. */
static enum err inflate_some(struct gunzip *g, struct why *why)
{
    unsigned char piece[PIECE_BYTES];
    int code;

    g->z.next_out = piece;
    g->z.avail_out = sizeof(piece);
    code = FAULT("gunzip.inflate") ? Z_MEM_ERROR : inflate(&g->z, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return broken(g, code, why);
    g->is_whole = code == Z_STREAM_END;
    return give(g, (struct str){(char *)piece, sizeof(piece) - g->z.avail_out},
                why);
}

/* No more of them than zlib can count. */
static enum err feed(struct gunzip *g, struct str bytes, struct why *why)
{
    enum err e = OK;

    g->z.next_in = (const Bytef *)bytes.p;
    g->z.avail_in = (uInt)bytes.n;
    /* A piece that is full may not have been the last of what is known. */
    g->z.avail_out = 0;
    while (!e && !g->is_whole && (g->z.avail_in || !g->z.avail_out))
        e = inflate_some(g, why);
    if (!e && g->z.avail_in)
        e = why_err(why, ERR_BAD_REQUEST,
                    "there is more behind the end of the gzip file");
    return e;
}

enum err gunzip_feed(struct gunzip *g, struct str bytes, struct why *why)
{
    enum err e = OK;

    while (bytes.n && !e) {
        struct str now = str_sub(bytes, 0, UINT32_MAX / 2);

        e = feed(g, now, why);
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return e;
}

enum err gunzip_end(const struct gunzip *g, struct why *why)
{
    if (g->is_whole)
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "%s",
                   g->z.total_in ? "the gzip file is cut off"
                                 : "this is no gzip file: it is empty");
}
