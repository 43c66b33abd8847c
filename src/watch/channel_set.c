/* The set of outputs, when rules change. An output that stays keeps its cursor
 * and gets its new numbers. An output that is no longer configured leaves when
 * its operation in flight is over; its cursor stays in the store. */
#include "watch/channel.h"

#include <stdio.h>

static void output_set_numbers(struct output *p,
                               const struct channel_settings *s)
{
    p->settings.takes_feed = s->takes_feed;
    p->settings.takes_alerts = s->takes_alerts;
    p->settings.rotate_bytes = s->rotate_bytes;
    p->settings.keep = s->keep < CHANNEL_KEEP_MAX ? s->keep : CHANNEL_KEEP_MAX;
    p->post.form = s->form;
}

void output_set(struct output *p, const struct channel_settings *s)
{
    const char *folder = p->owner->opts.folder;
    bool is_below = s->file.n && s->file.p[0] != '/';

    output_set_numbers(p, s);
    p->post.channel = str_of(p->name);
    if (p->is_file)
        snprintf(p->file.path, sizeof(p->file.path), "%s%s%.*s",
                 is_below ? folder : "", is_below ? "/" : "", STR_ARG(s->file));
    else
        snprintf(p->url, sizeof(p->url), "%.*s", STR_ARG(s->webhook));
}

static bool output_matches(const struct output *p, bool is_file,
                           const struct channel_settings *s)
{
    struct output probe = {.owner = p->owner, .is_file = is_file};

    if (p->is_leaving || p->is_file != is_file ||
        !str_eq(str_of(p->name), s->name))
        return false;
    snprintf(probe.name, sizeof(probe.name), "%s", p->name);
    output_set(&probe, s);
    return is_file ? strcmp(probe.file.path, p->file.path) == 0
                   : strcmp(probe.url, p->url) == 0;
}

static bool output_is_configured(const struct output *p,
                                 const struct channel_settings *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p->is_file ? list[i].file.n : list[i].webhook.n) &&
            output_matches(p, p->is_file, &list[i]))
            return true;
    return false;
}

static const char *output_config_error(const struct channels *c,
                                       const struct channel_settings *s,
                                       bool is_file)
{
    size_t folder = strlen(c->opts.folder) + 1;

    if (!s->name.n || s->name.n > CHANNEL_NAME_MAX)
        return "its name is empty or too long";
    if (is_file && s->file.n + folder >= CHANNEL_PATH_MAX)
        return "the path of its file is too long";
    if (!is_file && s->webhook.n > CHANNEL_URL_MAX)
        return "its webhook is too long";
    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);
        struct output probe = {.owner = p->owner, .is_file = is_file};

        if (p->is_leaving || p->is_file != is_file)
            continue;
        if (str_eq(str_of(p->name), s->name))
            return "another channel has the same name";
        if (!is_file)
            continue;
        output_set(&probe, s);
        if (strcmp(probe.file.path, p->file.path) == 0)
            return "another channel has the same file";
    }
    return NULL;
}

static void output_configure(struct channels *c,
                             const struct channel_settings *s, bool is_file)
{
    const char *wrong;
    struct output *p;

    LIST_EACH(l, &c->outputs)
    {
        p = LIST_OF(l, struct output, node);
        if (output_matches(p, is_file, s)) {
            output_set_numbers(p, s);
            return;
        }
    }
    wrong = output_config_error(c, s, is_file);
    if (wrong)
        log_error(c->opts.log, "channel.left_out", LOG_S("channel", s->name),
                  LOG_C("because", wrong));
    else
        output_look(output_new(c, is_file, s));
}

void channels_set(struct channels *c, const struct channel_settings *list,
                  size_t n)
{
    struct list_node *l, *next;

    if (n > CHANNELS_MAX) {
        log_error(c->opts.log, "channel.left_out",
                  LOG_S("channel", list[CHANNELS_MAX].name),
                  LOG_C("because", "there are too many channels"));
        n = CHANNELS_MAX;
    }
    for (l = list_first(&c->outputs); l; l = list_next(&c->outputs, l)) {
        struct output *p = LIST_OF(l, struct output, node);

        if (output_is_configured(p, list, n))
            continue;
        feed_leave(c->opts.feed, &p->reader);
        loop_timer_cancel(c->opts.loop, &p->pause);
        output_post_cancel(p);
        p->is_leaving = true;
    }
    if (!c->is_keeping)
        channels_keep(c, false);
    for (l = list_first(&c->outputs); l; l = next) {
        next = list_next(&c->outputs, l);
        output_went(LIST_OF(l, struct output, node));
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].file.n)
            output_configure(c, &list[i], true);
        if (list[i].webhook.n)
            output_configure(c, &list[i], false);
    }
}
