/* What has changed is read anew, and only what is good replaces what is in
 * use. A certificate and its key are two files, so a look may come between the
 * two writes of a renewal: that is an error like others, said once, and found
 * to be mended by the next look. */
#include "certs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fault.h"

enum { LOOK_MS = 10 * 1000, DAY_S = 24 * 3600 };

size_t certs_of(const struct config *c, struct net_cert out[CERTS_MAX])
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

enum err certs_check(const struct config *c, int64_t now_ms,
                     int64_t *first_ends_s, char setting[32], struct why *why)
{
    struct net_cert files[CERTS_MAX];
    size_t n = certs_of(c, files);

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

/* One that is not there is like no other. */
static struct certs_seen look_at(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct certs_seen){.bytes = -1};
    return (struct certs_seen){
        .device = st.st_dev,
        .inode = st.st_ino,
        .bytes = st.st_size,
        .changed_ns =
            (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
    };
}

/* Look at all files; whether one is another than before. */
static bool have_changed(struct certs_files *f)
{
    bool is_news = false;

    for (size_t i = 0; i < 2 * f->n; i++) {
        struct certs_seen now = look_at(f->paths[i]), *was = &f->seen[i];

        is_news = is_news || now.device != was->device ||
                  now.inode != was->inode || now.bytes != was->bytes ||
                  now.changed_ns != was->changed_ns;
        *was = now;
    }
    return is_news;
}

static void files_clear(struct certs_files *f)
{
    for (size_t i = 0; i < 2 * f->n; i++)
        free(f->paths[i]);
    f->n = 0;
}

/* The configuration may be gone before we are. */
static enum err files_copy(struct certs_files *f, const struct net_cert *from,
                           size_t n, struct why *why)
{
    bool is_whole = true;

    f->n = n;
    for (size_t i = 0; i < 2 * n; i++) {
        const char *path = i % 2 ? from[i / 2].key_file : from[i / 2].cert_file;

        f->paths[i] = FAULT("certs.files") ? NULL : strdup(path);
        is_whole = is_whole && f->paths[i];
    }
    return is_whole ? OK : why_err(why, ERR_NOMEM, "out of memory");
}

static void files_list(const struct certs_files *f,
                       struct net_cert out[CERTS_MAX])
{
    for (size_t i = 0; i < f->n; i++)
        out[i] = (struct net_cert){f->paths[2 * i], f->paths[2 * i + 1]};
}

static void note_renewed(struct certs *c)
{
    log_info(c->log, "tls.certificates_renewed",
             LOG_I("count", (int64_t)c->files.n));
    c->warned_at_ms = loop_wall_ms(c->loop);
    c->problem.text[0] = '\0';
}

/* Said once. */
static void note_problem(struct certs *c, const struct why *why)
{
    if (strcmp(why->text, c->problem.text) != 0)
        log_error(c->log, "tls.certificates_not_renewed",
                  LOG_C("because", why->text),
                  LOG_C("so", "the one before stays in use for it"));
    c->problem = *why;
}

static void use_again(struct certs *c)
{
    struct net_cert files[CERTS_MAX];
    struct why why = {""};

    files_list(&c->files, files);
    if (net_set_certs(c->net, files, c->files.n, &why) == OK)
        note_renewed(c);
    else
        note_problem(c, &why);
}

/* Net says so once, when it gets them; they may be in use for months. */
static void warn_again(struct certs *c)
{
    int64_t now_ms = loop_wall_ms(c->loop);
    int64_t left_s = net_stats(c->net).tls_cert_ends_s - now_ms / 1000;
    int64_t since_s = (now_ms - c->warned_at_ms) / 1000;
    bool has_just_ended = left_s <= 0 && left_s + since_s > 0;

    if (left_s >= CERTS_SOON_DAYS * DAY_S ||
        (since_s < DAY_S && !has_just_ended))
        return;
    c->warned_at_ms = now_ms;
    if (left_s > 0)
        log_warn(
            c->log, "tls.certificate_ends_soon", LOG_I("seconds", left_s),
            LOG_C("do", "have it renewed; the new one is taken up by itself"));
    else
        log_error(
            c->log, "tls.certificate_has_ended", LOG_I("seconds", -left_s),
            LOG_C("do", "have it renewed; the new one is taken up by itself"));
}

static void look_again_later(struct certs *c)
{
    if (loop_timer_set(c->loop, &c->look_again, LOOK_MS) != OK)
        log_warn(c->log, "tls.certificates_not_watched",
                 LOG_C("because", "out of memory; SIGHUP still works"));
}

static void on_look(struct timer *t)
{
    struct certs *c = LIST_OF(t, struct certs, look_again);

    /* What could not be used may be usable by now: valid from noon on. */
    if (have_changed(&c->files) || c->problem.text[0])
        use_again(c);
    warn_again(c);
    look_again_later(c);
}

enum err certs_prepare(struct certs *c, const struct config *config,
                       struct why *why)
{
    struct net_cert files[CERTS_MAX];
    size_t n = certs_of(config, files);
    enum err e;

    certs_forget(c);
    if (!n)
        return OK;
    e = files_copy(&c->next, files, n, why);
    if (!e) {
        /* Before they are read: what is written in between is news then. */
        have_changed(&c->next);
        e = net_certs_new(c->net, files, n, &c->prepared, why);
    }
    c->next_problem = e ? *why : (struct why){""};
    if (c->prepared)
        return OK;
    if (e)
        certs_forget(c);
    return e;
}

void certs_commit(struct certs *c)
{
    bool is_news;

    if (!c->prepared) {
        if (!*net_tls_url(c->net))
            certs_stop(c);
        return;
    }
    is_news = c->files.n && have_changed(&c->files);
    net_certs_use(c->net, c->prepared);
    c->prepared = NULL;
    files_clear(&c->files);
    c->files = c->next;
    c->next.n = 0;
    if (c->next_problem.text[0])
        note_problem(c, &c->next_problem);
    else if (is_news)
        note_renewed(c);
    c->problem = c->next_problem;
    c->warned_at_ms = loop_wall_ms(c->loop);
    c->look_again.fire = on_look;
    look_again_later(c);
}

void certs_forget(struct certs *c)
{
    net_certs_free(c->prepared);
    c->prepared = NULL;
    files_clear(&c->next);
}

enum err certs_start(struct certs *c, const struct config *config,
                     struct why *why)
{
    enum err e = certs_prepare(c, config, why);

    if (!e)
        certs_commit(c);
    return e;
}

void certs_stop(struct certs *c)
{
    if (c->loop)
        loop_timer_cancel(c->loop, &c->look_again);
    certs_forget(c);
    files_clear(&c->files);
}
