/* The table in words: which fields there are, by their whole path, and what
 * each may be. The words for a type are those that its reader has for what is
 * wrong. */
#include "model/card_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { PATH_BYTES = 256, ALLOWED_BYTES = 512 };

struct words {
    char text[ALLOWED_BYTES];
    size_t n;
};

struct teller {
    enum card_dialect dialect;
    void (*each)(void *ctx, const struct card_about *f);
    void *ctx;
};

static void add(struct words *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add(struct words *w, const char *fmt, ...)
{
    size_t room = sizeof(w->text) - w->n;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(w->text + w->n, room, fmt, args);
    va_end(args);
    if (n > 0)
        w->n += (size_t)n < room ? (size_t)n : room - 1;
}

static void say_letters(struct words *out, const struct card_field *f)
{
    bool has_lines = f->type == &card_text;

    add(out, "%s of %s%lld bytes", has_lines ? "text" : "one line of text",
        f->min ? "1 to " : "up to ", (long long)f->max);
}

static void say_number(struct words *out, const struct card_field *f)
{
    add(out, "a whole number from %lld to %lld", (long long)f->min,
        (long long)f->max);
}

static void say_name(struct words *out, int most, const char *signs)
{
    add(out, "1 to %d letters, digits, %s", most, signs);
}

static void say(struct words *out, const struct card_field *f);

static void say_list(struct words *out, const struct card_field *f)
{
    add(out, "a list of up to %zu, each ", f->most);
    say(out, &f->inner->list[0]);
}

static void say(struct words *out, const struct card_field *f)
{
    const struct card_type *t = f->type;

    if (f->allowed)
        add(out, "%s", f->allowed);
    else if (t == &card_line || t == &card_text)
        say_letters(out, f);
    else if (t == &card_name)
        say_name(out, AGENT_NAME_MAX,
                 "`.`, `_` and `-`, beginning with a letter or digit");
    else if (t == &card_skill_id)
        say_name(out, SKILL_ID_MAX, "`.`, `_` and `-`");
    else if (t == &card_principal)
        say_name(out, PRINCIPAL_NAME_MAX,
                 "`.`, `_`, `@` and `-`, beginning with a letter or digit");
    else if (t == &card_org)
        say_name(out, PRINCIPAL_NAME_MAX,
                 "`.`, `_`, `@` and `-`, beginning with a letter or digit; or "
                 "\"\"");
    else if (t == &card_url)
        add(out, "%.*s", STR_ARG(agent_url_allowed()));
    else if (t == &card_web)
        add(out, "\"https://…\" or \"http://…\"");
    else if (t == &card_int || t == &card_micros)
        say_number(out, f);
    else if (t == &card_unless)
        add(out, "true or false");
    else if (t == &card_visibility)
        add(out, "\"public\", \"shared\" or \"private\"");
    else if (t == &card_kind)
        add(out, "\"platform\", \"managed\" or \"self-hosted\"");
    else if (t == &card_object)
        add(out, "an object of up to %d bytes", AGENT_OBJECT_MAX);
    else if (t == &card_strs || t == &card_allow)
        say_list(out, f);
    else if (t == &card_skills)
        add(out, "a list of up to %zu objects", f->most);
    else if (t == &card_group || t == &card_pricing)
        add(out, "an object");
}

/* Whether there is something to be said of it to whoever writes cards. */
static bool is_told(const struct teller *t, const struct card_field *f)
{
    return f->about &&
           !(t->dialect == CARD_WIRE ? f->is_config_only : f->is_wire_only);
}

static void tell(const struct teller *t, const struct card_field *f,
                 struct str path, bool is_required)
{
    struct words allowed = {.n = 0};

    say(&allowed, f);
    t->each(t->ctx, &(struct card_about){.path = path,
                                         .allowed = {allowed.text, allowed.n},
                                         .what = f->about,
                                         .is_required = is_required});
}

/* What stands in them, each with its path behind `head`. */
static void tell_all(const struct teller *t, const struct card_fields *fields,
                     const char *head)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct card_field *f = &fields->list[i];
        bool may_lack = t->dialect == CARD_CONFIG && f->is_config_optional;
        bool is_name = fields == &card_fields && f->type == &card_name && !i;
        char path[PATH_BYTES], own[CARD_KEY_BYTES];
        int n;

        if (!is_told(t, f))
            continue;
        n = snprintf(path, sizeof(path), "%s%.*s", head,
                     STR_ARG(card_key(f, t->dialect, own)));
        tell(t, f, (struct str){path, (size_t)n},
             is_name || (f->is_required && !may_lack));
        if (!f->inner || f->type == &card_strs || f->type == &card_allow)
            continue;
        snprintf(path + n, sizeof(path) - (size_t)n, "%s",
                 f->type == &card_skills ? "[]." : ".");
        tell_all(t, f->inner, path);
    }
}

void card_each(enum card_dialect d,
               void (*each)(void *ctx, const struct card_about *f), void *ctx)
{
    struct teller t = {d, each, ctx};

    tell_all(&t, &card_fields, "");
}
