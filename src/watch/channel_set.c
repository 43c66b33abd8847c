/* Which places there are: other rules, other channels. A place that stays goes
 * on as it is, with its new numbers; one that is not wanted any more leaves
 * when what it has under way is over, and its cursor stays in the store. */
#include "watch/channel.h"

#include <stdio.h>

void place_set(struct place *p, const struct channel_settings *s)
{
    const char *folder = p->owner->opts.folder;
    bool is_below = s->file.n && s->file.p[0] != '/';

    p->asked.takes_feed = s->takes_feed;
    p->asked.takes_alerts = s->takes_alerts;
    p->post.form = s->form;
    p->post.channel = str_of(p->name);
    p->asked.rotate_bytes = s->rotate_bytes;
    p->asked.keep = s->keep < CHANNEL_KEEP_MAX ? s->keep : CHANNEL_KEEP_MAX;
    if (p->is_file)
        snprintf(p->file.path, sizeof(p->file.path), "%s%s%.*s",
                 is_below ? folder : "", is_below ? "/" : "", STR_ARG(s->file));
    else
        snprintf(p->url, sizeof(p->url), "%.*s", STR_ARG(s->webhook));
}

static void place_leave(struct place *p)
{
    feed_leave(p->owner->opts.feed, &p->reader);
    loop_timer_cancel(p->owner->opts.loop, &p->pause);
    place_post_cancel(p);
    p->is_leaving = true;
}

static bool is_same(const struct place *p, bool is_file,
                    const struct channel_settings *s)
{
    struct place probe = {.owner = p->owner, .is_file = is_file};

    if (p->is_leaving || p->is_file != is_file ||
        !str_eq(str_of(p->name), s->name))
        return false;
    snprintf(probe.name, sizeof(probe.name), "%s", p->name);
    place_set(&probe, s);
    return is_file ? strcmp(probe.file.path, p->file.path) == 0
                   : strcmp(probe.url, p->url) == 0;
}

static bool is_wanted(const struct place *p,
                      const struct channel_settings *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p->is_file ? list[i].file.n : list[i].webhook.n) &&
            is_same(p, p->is_file, &list[i]))
            return true;
    return false;
}

static const char *what_is_wrong(const struct channels *c,
                                 const struct channel_settings *s, bool is_file)
{
    size_t folder = strlen(c->opts.folder) + 1;

    if (!s->name.n || s->name.n > CHANNEL_NAME_MAX)
        return "its name is empty or too long";
    if (is_file && s->file.n + folder >= CHANNEL_PATH_MAX)
        return "the path of its file is too long";
    if (!is_file && s->webhook.n > CHANNEL_URL_MAX)
        return "its webhook is too long";
    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);
        struct place probe = {.owner = p->owner, .is_file = is_file};

        if (p->is_leaving || p->is_file != is_file)
            continue;
        if (str_eq(str_of(p->name), s->name))
            return "there are two of that name";
        if (!is_file)
            continue;
        place_set(&probe, s);
        if (strcmp(probe.file.path, p->file.path) == 0)
            return "another channel has the same file";
    }
    return NULL;
}

static void want(struct channels *c, const struct channel_settings *s,
                 bool is_file)
{
    const char *wrong;
    struct place *p;

    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        p = LIST_OF(l, struct place, node);
        if (is_same(p, is_file, s)) {
            p->asked.takes_feed = s->takes_feed;
            p->asked.takes_alerts = s->takes_alerts;
            p->asked.rotate_bytes = s->rotate_bytes;
            p->asked.keep =
                s->keep < CHANNEL_KEEP_MAX ? s->keep : CHANNEL_KEEP_MAX;
            p->post.form = s->form;
            return;
        }
    }
    wrong = what_is_wrong(c, s, is_file);
    p = wrong ? NULL : place_new(c, is_file, s);
    if (p)
        place_look(p);
    else
        log_error(c->opts.log, "channel.left_out", LOG_S("channel", s->name),
                  LOG_C("because", wrong ? wrong : "out of memory"));
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
    for (l = list_first(&c->places); l; l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        if (!is_wanted(p, list, n))
            place_leave(p);
    }
    if (!c->is_keeping)
        channels_keep(c, false);
    for (l = list_first(&c->places); l; l = next) {
        next = list_next(&c->places, l);
        place_went(LIST_OF(l, struct place, node));
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].file.n)
            want(c, &list[i], true);
        if (list[i].webhook.n)
            want(c, &list[i], false);
    }
}
