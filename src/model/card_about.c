/* The table as text: the fields with their full path, and the values that each
 * accepts. The words for a type match the error messages of its reader. */
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

static void card_add_words(struct words *w, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

static void card_add_words(struct words *w, const char *fmt, ...)
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

static void card_describe_name(struct words *out, int most, const char *signs)
{
    card_add_words(out, "1 to %d letters, digits, %s", most, signs);
}

static void card_describe_type(struct words *out, const struct card_field *f)
{
    const struct card_type *t = f->type;

    if (f->allowed)
        card_add_words(out, "%s", f->allowed);
    else if (t == &card_line || t == &card_text)
        card_add_words(out, "%s of %s%lld bytes",
                       t == &card_text ? "text" : "one line of text",
                       f->min ? "1 to " : "up to ", (long long)f->max);
    else if (t == &card_name)
        card_describe_name(
            out, AGENT_NAME_MAX,
            "`.`, `_` and `-`, beginning with a letter or digit");
    else if (t == &card_skill_id)
        card_describe_name(out, SKILL_ID_MAX, "`.`, `_` and `-`");
    else if (t == &card_principal)
        card_describe_name(
            out, PRINCIPAL_NAME_MAX,
            "`.`, `_`, `@` and `-`, beginning with a letter or digit");
    else if (t == &card_org)
        card_describe_name(
            out, PRINCIPAL_NAME_MAX,
            "`.`, `_`, `@` and `-`, beginning with a letter or digit; or "
            "\"\"");
    else if (t == &card_url)
        card_add_words(out, "%.*s", STR_ARG(agent_url_allowed()));
    else if (t == &card_web)
        card_add_words(out, "\"https://…\" or \"http://…\"");
    else if (t == &card_int || t == &card_micros)
        card_add_words(out, "a whole number from %lld to %lld",
                       (long long)f->min, (long long)f->max);
    else if (t == &card_unless)
        card_add_words(out, "true or false");
    else if (t == &card_visibility)
        card_add_words(out, "\"public\", \"shared\" or \"private\"");
    else if (t == &card_kind)
        card_add_words(out, "\"platform\", \"managed\" or \"self-hosted\"");
    else if (t == &card_object)
        card_add_words(out, "an object of up to %d bytes", AGENT_OBJECT_MAX);
    else if (t == &card_strs || t == &card_allow) {
        card_add_words(out, "a list of up to %zu, each ", f->most);
        card_describe_type(out, &f->inner->list[0]);
    } else if (t == &card_skills)
        card_add_words(out, "a list of up to %zu objects", f->most);
    else if (t == &card_group || t == &card_pricing)
        card_add_words(out, "an object");
}

/* Describe all fields, each with its path after `head`. */
static void card_describe_fields(const struct teller *t,
                                 const struct card_fields *fields,
                                 const char *head)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct card_field *f = &fields->list[i];
        bool may_lack = t->dialect == CARD_CONFIG && f->is_config_optional;
        bool is_name = fields == &card_fields && f->type == &card_name && !i;
        char path[PATH_BYTES], own[CARD_KEY_BYTES];
        struct words allowed = {.n = 0};
        int n;

        if (!f->about ||
            (t->dialect == CARD_WIRE ? f->is_config_only : f->is_wire_only))
            continue; /* not for authors of cards */
        n = snprintf(path, sizeof(path), "%s%.*s", head,
                     STR_ARG(card_key(f, t->dialect, own)));
        card_describe_type(&allowed, f);
        t->each(t->ctx,
                &(struct card_about){
                    .path = {path, (size_t)n},
                    .allowed = {allowed.text, allowed.n},
                    .what = f->about,
                    .is_required = is_name || (f->is_required && !may_lack)});
        if (!f->inner || f->type == &card_strs || f->type == &card_allow)
            continue;
        snprintf(path + n, sizeof(path) - (size_t)n, "%s",
                 f->type == &card_skills ? "[]." : ".");
        card_describe_fields(t, f->inner, path);
    }
}

void card_each(enum card_dialect d,
               void (*each)(void *ctx, const struct card_about *f), void *ctx)
{
    struct teller t = {d, each, ctx};

    card_describe_fields(&t, &card_fields, "");
}
