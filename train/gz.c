/* Files of texts are small enough to be held whole, packed and unpacked. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/fault.h"

enum { CHUNK = 1 << 18 };

enum err file_read(const char *path, struct buf *out, struct why *why)
{
    int fd = FAULT("train.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    if (fd < 0)
        return why_err(why, ERR_IO, "cannot open %s: %s", path,
                       strerror(errno));
    while (n > 0) {
        char *to = buf_reserve(out, CHUNK);

        if (!to)
            break;
        n = FAULT("train.read") ? -1 : read(fd, to, CHUNK);
        if (n > 0)
            buf_commit(out, (size_t)n);
    }
    if (n < 0)
        why_err(why, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    close(fd);
    if (out->over)
        return why_err(why, ERR_LIMIT, "%s is too large", path);
    return n < 0 ? ERR_IO : OK;
}

enum err gz_unpack(struct str packed, struct buf *out, struct why *why)
{
    z_stream z = {.next_in = (const Bytef *)packed.p,
                  .avail_in = (uInt)packed.n};
    int state = Z_OK;

    if (packed.n > UINT32_MAX || FAULT("train.unpack") ||
        inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return why_err(why, ERR_NOMEM, "cannot unpack so much");
    while (state == Z_OK) {
        char *to = buf_reserve(out, CHUNK);

        if (!to)
            break;
        z.next_out = (Bytef *)to;
        z.avail_out = CHUNK;
        state = inflate(&z, Z_NO_FLUSH);
        buf_commit(out, CHUNK - z.avail_out);
    }
    inflateEnd(&z);
    if (out->over)
        return why_err(why, ERR_LIMIT, "too large when unpacked");
    if (state != Z_STREAM_END || z.avail_in)
        return why_err(why, ERR_SYNTAX, "not a whole gzip file");
    return OK;
}
