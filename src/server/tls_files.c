/* Changed files are read again, and replace the certificates in use only if
 * they are valid. A certificate and its key are two files, so a check may come
 * between the two writes of a renewal. That is an error like others: it is
 * logged once, and gone at the next check. */
#include "server/tls_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"

enum { CHECK_MS = 10 * 1000, DAY_S = 24 * 3600 };

size_t tls_files_of(const struct config *c, struct net_cert out[TLS_FILES_MAX])
{
    size_t n = 0;

    if (!c->tls.listen.n)
        return 0;
    out[n++] = (struct net_cert){c->tls.cert_file.p, c->tls.key_file.p};
    for (size_t i = 0; i < c->tls.more.n; i++)
        out[n++] = (struct net_cert){c->tls.more.list[i].cert_file.p,
                                     c->tls.more.list[i].key_file.p};
    return n;
}

enum err tls_files_check(const struct config *c, int64_t now_ms,
                         int64_t *first_ends_s, char setting[32],
                         struct why *why)
{
    struct net_cert files[TLS_FILES_MAX];
    size_t n = tls_files_of(c, files);

    *first_ends_s = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t ends_s;
        enum err e = net_check_cert(&files[i], now_ms, &ends_s, why);

        if (e && setting && i)
            snprintf(setting, 32, "tls.more[%zu]", i - 1);
        else if (e && setting)
            snprintf(setting, 32, "tls.certFile");
        if (e)
            return e;
        if (!*first_ends_s || ends_s < *first_ends_s)
            *first_ends_s = ends_s;
    }
    return OK;
}

/* A missing file differs from every existing one. */
static struct tls_files_seen tls_file_stat(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct tls_files_seen){.bytes = -1};
    return (struct tls_files_seen){
        .device = st.st_dev,
        .inode = st.st_ino,
        .bytes = st.st_size,
        .changed_ns =
            (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
    };
}

/* Whether a file has changed since the last call. */
static bool tls_files_have_changed(struct tls_file_set *f)
{
    bool is_news = false;

    for (size_t i = 0; i < 2 * f->n; i++) {
        struct tls_files_seen now = tls_file_stat(f->paths[i]),
                              *was = &f->seen[i];

        is_news = is_news || now.device != was->device ||
                  now.inode != was->inode || now.bytes != was->bytes ||
                  now.changed_ns != was->changed_ns;
        *was = now;
    }
    return is_news;
}

static void tls_file_set_clear(struct tls_file_set *f)
{
    for (size_t i = 0; i < 2 * f->n; i++)
        free(f->paths[i]);
    f->n = 0;
}

/* Copies the paths, since the configuration may be freed earlier. */
static void tls_file_set_copy(struct tls_file_set *f,
                              const struct net_cert *from, size_t n)
{
    f->n = n;
    for (size_t i = 0; i < 2 * n; i++) {
        const char *path = i % 2 ? from[i / 2].key_file : from[i / 2].cert_file;

        f->paths[i] = mem_copy(path, strlen(path));
    }
}

static void log_certs_renewed(struct tls_files *c)
{
    log_info(c->log, "tls.certificates_renewed",
             LOG_I("count", (int64_t)c->files.n));
    c->warned_at_ms = loop_wall_ms(c->loop);
    c->problem.text[0] = '\0';
}

/* Logs each problem once. */
static void log_certs_problem(struct tls_files *c, const struct why *why)
{
    if (strcmp(why->text, c->problem.text) != 0)
        log_error(c->log, "tls.certificates_not_renewed",
                  LOG_C("because", why->text),
                  LOG_C("so", "the earlier one stays in use"));
    c->problem = *why;
}

static void reload_certs(struct tls_files *c)
{
    struct net_cert files[TLS_FILES_MAX];
    struct why why = {""};

    for (size_t i = 0; i < c->files.n; i++)
        files[i] =
            (struct net_cert){c->files.paths[2 * i], c->files.paths[2 * i + 1]};
    if (net_set_certs(c->net, files, c->files.n, &why) == OK)
        log_certs_renewed(c);
    else
        log_certs_problem(c, &why);
}

/* Repeats the warning once a day. net logs it only when it gets a certificate,
 * which may be in use for months. */
static void warn_of_expiry(struct tls_files *c)
{
    int64_t now_ms = loop_wall_ms(c->loop);
    int64_t left_s = net_stats(c->net).tls_cert_ends_s - now_ms / 1000;
    int64_t since_s = (now_ms - c->warned_at_ms) / 1000;
    bool has_just_ended = left_s <= 0 && left_s + since_s > 0;

    if (left_s >= TLS_FILES_SOON_DAYS * DAY_S ||
        (since_s < DAY_S && !has_just_ended))
        return;
    c->warned_at_ms = now_ms;
    if (left_s > 0)
        log_warn(c->log, "tls.certificate_ends_soon", LOG_I("seconds", left_s),
                 LOG_C("do", "renew it; the new one is loaded automatically"));
    else
        log_error(c->log, "tls.certificate_has_ended",
                  LOG_I("seconds", -left_s),
                  LOG_C("do", "renew it; the new one is loaded automatically"));
}

static void on_tls_files_check(struct timer *t)
{
    struct tls_files *c = LIST_OF(t, struct tls_files, look_again);

    /* Unchanged files may have become valid: a certificate may begin at noon.
     */
    if (tls_files_have_changed(&c->files) || c->problem.text[0])
        reload_certs(c);
    warn_of_expiry(c);
    loop_timer_set(c->loop, &c->look_again, CHECK_MS);
}

enum err tls_files_prepare(struct tls_files *c, const struct config *config,
                           struct why *why)
{
    struct net_cert files[TLS_FILES_MAX];
    size_t n = tls_files_of(config, files);
    enum err e;

    tls_files_forget(c);
    if (!n)
        return OK;
    tls_file_set_copy(&c->next, files, n);
    /* Before they are read: a write in between counts as a change later. */
    tls_files_have_changed(&c->next);
    e = net_certs_new(c->net, files, n, &c->prepared, why);
    c->next_problem = e ? *why : (struct why){""};
    if (c->prepared)
        return OK;
    if (e)
        tls_files_forget(c);
    return e;
}

void tls_files_commit(struct tls_files *c)
{
    bool is_news;

    if (!c->prepared) {
        if (!*net_tls_url(c->net))
            tls_files_stop(c);
        return;
    }
    is_news = c->files.n && tls_files_have_changed(&c->files);
    net_certs_use(c->net, c->prepared);
    c->prepared = NULL;
    tls_file_set_clear(&c->files);
    c->files = c->next;
    c->next.n = 0;
    if (c->next_problem.text[0])
        log_certs_problem(c, &c->next_problem);
    else if (is_news)
        log_certs_renewed(c);
    c->problem = c->next_problem;
    c->warned_at_ms = loop_wall_ms(c->loop);
    c->look_again.fire = on_tls_files_check;
    loop_timer_set(c->loop, &c->look_again, CHECK_MS);
}

void tls_files_forget(struct tls_files *c)
{
    net_certs_free(c->prepared);
    c->prepared = NULL;
    tls_file_set_clear(&c->next);
}

enum err tls_files_start(struct tls_files *c, const struct config *config,
                         struct why *why)
{
    enum err e = tls_files_prepare(c, config, why);

    if (!e)
        tls_files_commit(c);
    return e;
}

void tls_files_stop(struct tls_files *c)
{
    if (c->loop)
        loop_timer_cancel(c->loop, &c->look_again);
    tls_files_forget(c);
    tls_file_set_clear(&c->files);
}
