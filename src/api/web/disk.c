/* Files from a folder on the disk, for developers of the pages. Only they set
 * web.folder, so this may wait for the disk.
 *
 * The folder may be a link, and may contain links to files within it. Files
 * outside are not served, since the API may be reachable from the whole
 * network. The real path (realpath) decides, not how the path looks. */
#include "api/web/internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only letters, digits, '_', '-', '.' and '/', and no name that begins
 * with a dot. */
static bool is_plain(struct str path)
{
    char before = '/';

    if (path.n == 0 || path.n > WEB_PATH_MAX)
        return false;
    for (size_t i = 0; i < path.n; before = path.p[i++]) {
        char c = path.p[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '_' || c == '-';

        if (!is_word && (before == '/' || (c != '.' && c != '/')))
            return false;
    }
    return before != '/';
}

/* The real path of the file, if it is in the folder. */
static bool find_within(const char *folder, struct str path,
                        char real[PATH_MAX])
{
    char root[PATH_MAX], whole[PATH_MAX];
    size_t n;

    if (!realpath(folder, root))
        return false;
    n = strlen(root);
    if ((size_t)snprintf(whole, sizeof(whole), "%s/%.*s", root,
                         STR_ARG(path)) >= sizeof(whole) ||
        !realpath(whole, real))
        return false;
    return strncmp(real, root, n) == 0 && (real[n] == '/' || n == 1);
}

static enum err web_read_all(int fd, size_t n, struct buf *out)
{
    size_t left = n;

    while (left) {
        char *to = buf_reserve(out, left);
        ssize_t more = to ? read(fd, to, left) : -1;

        if (more < 0)
            return to ? ERR_IO : ERR_NOMEM;
        if (more == 0)
            break; /* the file became shorter meanwhile */
        buf_commit(out, (size_t)more);
        left -= (size_t)more;
    }
    return OK;
}

enum err web_read_file(const char *folder, struct str path, struct buf *out)
{
    char real[PATH_MAX];
    struct stat st;
    enum err e = ERR_NOT_FOUND;
    int fd;

    if (!is_plain(path) || web_type(path).n == 0 ||
        !find_within(folder, path, real))
        return ERR_NOT_FOUND;
    fd = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return ERR_NOT_FOUND;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        e = st.st_size > WEB_FILE_MAX
                ? ERR_LIMIT
                : web_read_all(fd, (size_t)st.st_size, out);
    close(fd);
    return e;
}
