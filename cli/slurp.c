#include "cli/slurp.h"

#include <errno.h>
#include <unistd.h>

#include "base/fault.h"

enum err slurp(int fd, struct buf *out, size_t most)
{
    while (out->n <= most) {
        char *p = buf_reserve(out, SLURP_BYTES);
        ssize_t n;

        if (!p)
            return ERR_NOMEM;
        n = FAULT("slurp.read") ? (errno = EIO, -1) : read(fd, p, SLURP_BYTES);
        if (n < 0 && errno != EINTR)
            return ERR_IO;
        if (n == 0)
            return OK;
        if (n > 0)
            buf_commit(out, (size_t)n);
    }
    return ERR_LIMIT;
}

enum err slurp_words(const struct args *a, struct buf *out, size_t most)
{
    if (a->n_operands == 1 && str_eq(a->operands[0], STR("-")))
        return slurp(STDIN_FILENO, out, most);
    for (size_t i = 0; i < a->n_operands; i++) {
        if (i)
            buf_add_char(out, ' ');
        buf_add_str(out, a->operands[i]);
    }
    return out->over || out->n > most ? ERR_LIMIT : OK;
}
