/* Options come before the environment. What is no address or no token is told
 * apart here, before anything is sent; neither is repeated in the words. */
#include "cli/whom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"

#define DEFAULT_URL "http://127.0.0.1:8787"

/* The words do not repeat it: there may be a password in it. */
static enum err check_url(struct str url, struct why *why)
{
    struct url u;

    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://")))
        return why_err(why, ERR_USAGE,
                       "it does not begin with http:// or https://");
    if (url.n > CLIENT_URL_MAX)
        return why_err(why, ERR_USAGE, "it is longer than %d bytes",
                       CLIENT_URL_MAX);
    if (str_find(url, '?', 0) < url.n || str_find(url, '#', 0) < url.n)
        return why_err(why, ERR_USAGE, "a \"?\" or \"#\" has no place in it");
    return url_read(url, &u, why);
}

bool whom_read_url(struct cli *c, char out[CLIENT_URL_MAX + 1],
                   enum exit_status *status)
{
    struct str url = args_get(&c->args, "url");
    const char *where = "--url";
    struct why why;

    if (!url.n) {
        url = str_of(config_env(c->environ, "SIGNALBOX_URL"));
        where = "SIGNALBOX_URL";
    }
    if (!url.n)
        url = STR(DEFAULT_URL);
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (check_url(url, &why)) {
        *status = cli_error(c, ERR_USAGE,
                            "what %s says is no server's address: %s. Write it "
                            "like %s",
                            where, why.text,
                            str_starts(url, STR("https:"))
                                ? "https://box.example.org:8443"
                                : DEFAULT_URL);
        return false;
    }
    snprintf(out, CLIENT_URL_MAX + 1, "%.*s", STR_ARG(url));
    return true;
}

bool whom_read_ca(struct cli *c, const char **out, enum exit_status *status)
{
    struct str file = args_get(&c->args, "ca");
    const char *where = "--ca";
    struct stat st;

    if (!file.n) {
        file = str_of(config_env(c->environ, "SIGNALBOX_CA"));
        where = "SIGNALBOX_CA";
    }
    if (!file.n)
        return true;
    if (access(file.p, R_OK) != 0) {
        *status =
            cli_error(c, ERR_USAGE, "%s is %.200s, which cannot be read: %s",
                      where, file.p, strerror(errno));
        return false;
    }
    if (stat(file.p, &st) == 0 && S_ISDIR(st.st_mode)) {
        *status = cli_error(c, ERR_USAGE,
                            "%s is %.200s, which is a folder: name a file of "
                            "certificates in PEM",
                            where, file.p);
        return false;
    }
    *out = file.p;
    return true;
}

/* At most so many bytes of a file; pipes are read too. */
static enum err read_file(const char *path, char *to, size_t max, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t got = 1;

    *n = 0;
    if (fd < 0)
        return ERR_NOT_FOUND;
    while (got > 0 && *n < max) {
        got = read(fd, to + *n, max - *n);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            *n += (size_t)got;
    }
    close(fd);
    return got < 0 ? ERR_IO : OK;
}

static bool no_token(struct cli *c, enum exit_status *status)
{
    *status = cli_error(
        c, ERR_UNAUTHENTICATED,
        "a token is needed: export SIGNALBOX_TOKEN=sbx_..., or name a file "
        "that has it with --token-file FILE. A server's first start prints "
        "one; signalbox help token says how to make more");
    return false;
}

_Static_assert(sizeof(struct secret_room) > CLIENT_TOKEN_MAX + 1,
               "one that is too long is seen to be");

bool whom_read_secret(struct cli *c, const char *option, const char *variable,
                      struct secret_room *room, struct str *out,
                      enum exit_status *status)
{
    struct str file = args_get(&c->args, option);
    size_t n;

    if (!file.n) {
        *out = str_trim(str_of(config_env(c->environ, variable)));
        return true;
    }
    if (read_file(file.p, room->text, sizeof(room->text), &n)) {
        *status = cli_error(c, ERR_USAGE, "cannot read %s: %s", file.p,
                            strerror(errno));
        return false;
    }
    *out = (struct str){room->text, n};
    while (out->n && strchr("\r\n", out->p[out->n - 1]))
        out->n--;
    *out = str_trim(*out);
    return true;
}

bool whom_read_token(struct cli *c, char out[CLIENT_TOKEN_MAX + 1],
                     enum exit_status *status)
{
    struct str file = args_get(&c->args, "token-file"), token;
    struct secret_room room;
    const char *where = file.n ? file.p : "SIGNALBOX_TOKEN";

    if (!whom_read_secret(c, "token-file", "SIGNALBOX_TOKEN", &room, &token,
                          status))
        return false;
    if (!token.n && !file.n)
        return no_token(c, status);
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] >= 0x7f)
            token.n = 0;
    if (!token.n || token.n > CLIENT_TOKEN_MAX) {
        *status = cli_error(c, ERR_UNAUTHENTICATED,
                            "what is in %s is no token: one begins with sbx_ "
                            "and has no blank in it",
                            where);
        return false;
    }
    snprintf(out, CLIENT_TOKEN_MAX + 1, "%.*s", STR_ARG(token));
    return true;
}
