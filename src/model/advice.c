/* Host names are not resolved: that takes time, and the answer may differ when
 * a message is sent. Only addresses and localhost are judged; for names the
 * guard decides at the connection. Agents of the configuration are exempt
 * there, and so they are here. */
#include "model/advice.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/url.h"

static void advice_warn(struct advice *out, const char *code, const char *field,
                        const char *fmt, ...) PRINTF_LIKE(4, 5);

static void advice_warn(struct advice *out, const char *code, const char *field,
                        const char *fmt, ...)
{
    struct advice_warning *w = &out->list[out->n];
    va_list ap;

    if (out->n == ADVICE_MAX)
        return;
    out->n++;
    w->code = code;
    w->field = field;
    va_start(ap, fmt);
    vsnprintf(w->message, sizeof(w->message), fmt, ap);
    va_end(ap);
}

static size_t count_words(struct str s)
{
    size_t n = 0;
    bool is_in_word = false;

    for (size_t i = 0; i < s.n; i++) {
        bool is_space = str_is_space(s.p[i]);

        n += !is_space && !is_in_word;
        is_in_word = !is_space;
    }
    return n;
}

/* Bytes count too: Chinese and Japanese write no spaces between words. */
static bool has_few_words(struct str s)
{
    return count_words(s) < ADVICE_WORDS && s.n < ADVICE_BYTES;
}

static void advice_check_description(const struct agent *a, struct advice *out)
{
    if (a->routing.is_unroutable || a->n_skills ||
        !has_few_words(a->description))
        return;
    if (!a->description.n)
        advice_warn(
            out, "thin_card", "description",
            "the card has neither a description nor skills, so only messages "
            "that name the agent reach it; say what it does, and give it "
            "skills with examples");
    else
        advice_warn(
            out, "thin_card", "description",
            "the card has no skills and a description of %zu word%s, which is "
            "little to route by; say in two or three sentences what it does, "
            "and give it skills with examples of messages",
            count_words(a->description),
            count_words(a->description) == 1 ? "" : "s");
}

static void advice_check_closeness(const struct agent *a,
                                   const struct advice_against *g,
                                   struct advice *out)
{
    if (!g->close.n || a->routing.is_unroutable)
        return;
    if (g->likeness > 0)
        advice_warn(
            out, "close_card", "description",
            "the card says nearly the same as that of %.*s (likeness %.2f), "
            "so messages go to either; say in each what the other does not "
            "do, or keep one of the two",
            STR_ARG(g->close), g->likeness);
    else
        advice_warn(
            out, "close_card", "description",
            "the description is the same as that of %.*s, so messages go to "
            "either; say in each what the other does not do, or keep one of "
            "the two",
            STR_ARG(g->close));
}

static void advice_check_model(struct str id, const struct advice_against *g,
                               struct advice *out)
{
    struct str model, name = str_sub(id, 0, str_find(id, '/', 0));
    const struct model_def *m =
        model_def_find(g->models, g->n_models, id, &model);

    name = str_head(name, 64);
    if (!m)
        advice_warn(
            out, "unknown_model", "url",
            "the model \"%.*s\" is not configured, so the agent cannot "
            "answer; add \"models\": {\"%.*s\": {\"baseUrl\": "
            "\"https://…/v1\", \"model\": \"…\"}} to the configuration, or "
            "name another model",
            STR_ARG(name), STR_ARG(name));
    else if (!model.n)
        advice_warn(
            out, "unknown_model", "url",
            "models.%.*s.model, the name that its endpoint knows, is not set, "
            "so the agent cannot answer; set it in the configuration",
            STR_ARG(m->name));
}

/* Whether the host is an address, or names this machine, and the guard rejects
 * it. One allowed family is enough for localhost. */
static bool advice_is_closed(const struct guard *g, const struct url *url,
                             struct addr *out, const char **kind)
{
    char text[URL_HOST_MAX + 16];

    if (url_is_localhost(url->host)) {
        snprintf(text, sizeof(text), "[::1]:%u", url->port);
        if (addr_parse(str_of(text), out) ||
            guard_judge(g, &out->sa.any, NULL) == OK)
            return false;
        snprintf(text, sizeof(text), "127.0.0.1:%u", url->port);
    } else {
        snprintf(text, sizeof(text), url->is_v6 ? "[%.*s]:%u" : "%.*s:%u",
                 STR_ARG(url->host), url->port);
    }
    return addr_parse(str_of(text), out) == OK &&
           guard_judge(g, &out->sa.any, kind) != OK;
}

static void advice_check_address(struct str text, const char *field,
                                 const struct advice_against *g,
                                 struct advice *out)
{
    char range[GUARD_RANGE_BYTES];
    struct guard_range needed;
    const char *kind = "";
    struct addr addr;
    struct url url;

    if (url_read(text, &url, NULL) ||
        !advice_is_closed(&g->guard, &url, &addr, &kind) ||
        guard_range_of(&addr.sa.any, &needed))
        return;
    guard_range_write(&needed, range);
    advice_warn(
        out, "closed_address", field,
        "%.*s is a %s address that outgoing.allow does not list, so the server "
        "will not connect to it; an operator can add \"%s\" to outgoing.allow",
        STR_ARG(str_head(url.authority, 80)), kind, range);
}

void advice_of_card(const struct agent *a, struct advice *out)
{
    out->n = 0;
    advice_check_description(a, out);
}

void advice_of(const struct agent *a, const struct advice_against *against,
               struct advice *out)
{
    struct agent_url url;

    advice_of_card(a, out);
    advice_check_closeness(a, against, out);
    if (agent_url_read(a->url, &url, NULL) == OK) {
        if (url.transport == TRANSPORT_MODEL)
            advice_check_model(url.id, against, out);
        if (url.transport == TRANSPORT_HTTP && !a->is_configured)
            advice_check_address(a->url, "url", against, out);
    }
    if (a->wake.url.n && !a->is_configured)
        advice_check_address(a->wake.url, "wake.url", against, out);
}

bool advice_is_same_description(const struct agent *a, const struct agent *b)
{
    struct str x = str_trim(a->description), y = str_trim(b->description);

    return x.n && str_eq(x, y);
}

void advice_write(struct json_out *o, const struct advice *a)
{
    json_open(o, '[');
    for (size_t i = 0; i < a->n; i++) {
        json_open(o, '{');
        json_member_text(o, "code", str_of(a->list[i].code));
        json_member_text(o, "field", str_of(a->list[i].field));
        json_member_text(o, "message", str_of(a->list[i].message));
        json_close(o, '}');
    }
    json_close(o, ']');
}
