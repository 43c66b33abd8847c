/* zlib does the work. It is told to expect a gzip header. Otherwise it would
 * accept other formats too, and report a file of no known format in its own
 * words. */
#include "lab/gunzip.h"

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

static enum err gunzip_broken(const struct gunzip *g, int code, struct why *why)
{
    if (code == Z_MEM_ERROR)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (g->head.done != 1)
        return why_err(why, ERR_BAD_REQUEST, "this is not a gzip file");
    return why_err(why, ERR_BAD_REQUEST, "the gzip file is damaged: %s",
                   g->z.msg ? g->z.msg : "its compressed bytes are invalid");
}

static enum err gunzip_give(struct gunzip *g, struct str piece, struct why *why)
{
    if (!piece.n)
        return OK;
    if (piece.n > g->max_bytes - g->bytes)
        return why_err(why, ERR_LIMIT,
                       "the gzip file decompresses to more than the limit of "
                       "%llu bytes",
                       (unsigned long long)g->max_bytes);
    g->bytes += piece.n;
    return g->give(g->ctx, piece, why);
}

/* Decompresses as much as fits in one piece. */
static enum err gunzip_inflate_piece(struct gunzip *g, struct why *why)
{
    unsigned char piece[PIECE_BYTES];
    int code;

    g->z.next_out = piece;
    g->z.avail_out = sizeof(piece);
    code = FAULT("gunzip.inflate") ? Z_MEM_ERROR : inflate(&g->z, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return gunzip_broken(g, code, why);
    g->is_whole = code == Z_STREAM_END;
    return gunzip_give(
        g, (struct str){(char *)piece, sizeof(piece) - g->z.avail_out}, why);
}

/* bytes.n fits zlib's counter. */
static enum err gunzip_feed_chunk(struct gunzip *g, struct str bytes,
                                  struct why *why)
{
    enum err e = OK;

    g->z.next_in = (const Bytef *)bytes.p;
    g->z.avail_in = (uInt)bytes.n;
    /* After a full piece there may be more output without more input. */
    g->z.avail_out = 0;
    while (!e && !g->is_whole && (g->z.avail_in || !g->z.avail_out))
        e = gunzip_inflate_piece(g, why);
    if (!e && g->z.avail_in)
        e = why_err(why, ERR_BAD_REQUEST,
                    "there are more bytes after the end of the gzip file");
    return e;
}

enum err gunzip_feed(struct gunzip *g, struct str bytes, struct why *why)
{
    enum err e = OK;

    while (bytes.n && !e) {
        struct str now = str_sub(bytes, 0, UINT32_MAX / 2);

        e = gunzip_feed_chunk(g, now, why);
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return e;
}

enum err gunzip_end(const struct gunzip *g, struct why *why)
{
    if (g->is_whole)
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "%s",
                   g->z.total_in ? "the gzip file is truncated"
                                 : "this is not a gzip file: it is empty");
}
