/* Options override the environment. Invalid addresses and tokens are rejected
 * here, before anything is sent; no message repeats them. */
#include "cli/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"

#define DEFAULT_URL "http://127.0.0.1:8787"

/* The message does not repeat the URL, which may contain a password. */
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
        return why_err(why, ERR_USAGE, "it must not contain \"?\" or \"#\"");
    return url_read(url, &u, why);
}

bool endpoint_read_url(struct cli *c, char out[CLIENT_URL_MAX + 1],
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
                            "%s is not a server's address: %s. Write it like "
                            "%s",
                            where, why.text,
                            str_starts(url, STR("https:"))
                                ? "https://box.example.org:8443"
                                : DEFAULT_URL);
        return false;
    }
    snprintf(out, CLIENT_URL_MAX + 1, "%.*s", STR_ARG(url));
    return true;
}

bool endpoint_read_ca(struct cli *c, const char **out, enum exit_status *status)
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

_Static_assert(sizeof(struct secret_room) > CLIENT_TOKEN_MAX + 1,
               "a token that is too long must be noticed");

bool endpoint_read_secret(struct cli *c, const char *option,
                          const char *variable, struct secret_room *room,
                          struct str *out, enum exit_status *status)
{
    struct str file = args_get(&c->args, option);
    size_t n = 0;
    ssize_t got = 1;
    int fd;

    if (!file.n) {
        *out = str_trim(str_of(config_env(c->environ, variable)));
        return true;
    }
    fd = open(file.p, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (fd >= 0 && got > 0 && n < sizeof(room->text)) {
        got = read(fd, room->text + n, sizeof(room->text) - n);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    if (fd < 0 || got < 0) {
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

bool endpoint_read_token(struct cli *c, char out[CLIENT_TOKEN_MAX + 1],
                         enum exit_status *status)
{
    struct str file = args_get(&c->args, "token-file"), token;
    struct secret_room room;
    const char *where = file.n ? file.p : "SIGNALBOX_TOKEN";

    if (!endpoint_read_secret(c, "token-file", "SIGNALBOX_TOKEN", &room, &token,
                              status))
        return false;
    if (!token.n && !file.n) {
        *status = cli_error(
            c, ERR_UNAUTHENTICATED,
            "a token is needed: export SIGNALBOX_TOKEN=sbx_..., or name a file "
            "with --token-file FILE. The first start of a server prints a "
            "token; signalbox help token explains how to create more");
        return false;
    }
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] >= 0x7f)
            token.n = 0;
    if (!token.n || token.n > CLIENT_TOKEN_MAX) {
        *status = cli_error(c, ERR_UNAUTHENTICATED,
                            "%s has no valid token: a token begins with sbx_ "
                            "and contains no blanks",
                            where);
        return false;
    }
    snprintf(out, CLIENT_TOKEN_MAX + 1, "%.*s", STR_ARG(token));
    return true;
}
