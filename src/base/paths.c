#include "base/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* path is absolute and is cut where its existing part ends. */
static bool resolve(char path[PATH_MAX], char out[PATH_MAX])
{
    char rest[PATH_MAX] = "", longer[PATH_MAX];
    size_t n;

    while (!realpath(path, out)) {
        char *last = strrchr(path, '/');

        if ((errno != ENOENT && errno != ENOTDIR) || !last)
            return false;
        if (snprintf(longer, sizeof(longer), "%s%s", last, rest) >= PATH_MAX)
            return false;
        memcpy(rest, longer, sizeof(rest));
        last[last == path] = '\0';
    }
    n = strlen(out);
    if (n == 1 && rest[0])
        n = 0;
    if (n + strlen(rest) >= PATH_MAX)
        return false;
    memcpy(out + n, rest, strlen(rest) + 1);
    return true;
}

bool path_real(struct str path, char out[PATH_MAX])
{
    char whole[PATH_MAX], here[PATH_MAX];
    int n;

    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    if (str_starts(path, STR("/")))
        n = snprintf(whole, sizeof(whole), "%.*s", STR_ARG(path));
    else if (getcwd(here, sizeof(here)))
        n = snprintf(whole, sizeof(whole), "%s/%.*s", here, STR_ARG(path));
    else
        return false;
    return n < PATH_MAX && resolve(whole, out);
}

bool path_is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (n == 1) /* the root */
        return true;
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

enum err path_beside_data(struct str path, const char *data, const char *what,
                          struct why *why)
{
    char real[PATH_MAX];

    if (!path.n)
        return OK;
    if (!path_real(path, real))
        return why_err(why, ERR_NOT_ALLOWED, "%s %.*s cannot be followed", what,
                       STR_ARG(str_head(path, 160)));
    if (path_is_within(data, real))
        return why_err(why, ERR_NOT_ALLOWED,
                       "%s %.*s holds the server's data folder, %.160s: the "
                       "program could read and change the database. Choose a "
                       "folder beside it, or move the data (--data FOLDER)",
                       what, STR_ARG(str_head(path, 160)), data);
    if (path_is_within(real, data))
        return why_err(why, ERR_NOT_ALLOWED,
                       "%s %.*s lies in the server's data folder, %.160s, "
                       "which is closed to programs. Choose a folder beside it",
                       what, STR_ARG(str_head(path, 160)), data);
    return OK;
}
