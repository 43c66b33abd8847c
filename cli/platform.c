/* Telegram: https://core.telegram.org/bots/api#setmycommands; the token is part
 * of the path. Discord: "Bulk Overwrite Global (or Guild) Application Commands"
 * in its documentation; it rejects requests without "DiscordBot (URL, VERSION)"
 * as User-Agent. */
#include "cli/platform.h"

#include <ctype.h>
#include <stdio.h>

#define DISCORD_AGENT "DiscordBot (signalbox, " SIGNALBOX_VERSION ")"

static bool is_made_of(struct str s, const char *also)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) &&
            !(s.p[i] && strchr(also, s.p[i])))
            return false;
    return s.n > 0;
}

static int64_t platform_seconds_ms(const struct json *v)
{
    double s = json_real_or(v, 0);

    return s > 0 && s < 1e6 ? (int64_t)(s * 1000) + 1 : 0;
}

static void put_headers(struct platform_call *out, bool has_body)
{
    out->n_headers = 0;
    if (has_body)
        out->headers[out->n_headers++] =
            (struct fetch_header){STR("Content-Type"), STR("application/json")};
}

/* Telegram. */

static bool telegram_is_token(struct str token)
{
    size_t at = str_find(token, ':', 0);

    return str_is_digits(str_sub(token, 0, at)) && at < token.n &&
           is_made_of(str_sub(token, at + 1, token.n), "_-");
}

static enum err telegram_check(const struct platform_order *o, struct why *why)
{
    struct str number = o->chat.n && o->chat.p[0] == '-'
                            ? str_sub(o->chat, 1, o->chat.n)
                            : o->chat;
    bool is_chat = o->chat.n > 1 && o->chat.p[0] == '@'
                       ? is_made_of(str_sub(o->chat, 1, o->chat.n), "_")
                       : str_is_digits(number);

    if (o->chat.n && !is_chat)
        return why_err(why, ERR_USAGE,
                       "--chat must be the number of a chat, like "
                       "-1001234567890, or @name");
    if (o->chat.n && o->scope.n)
        return why_err(why, ERR_USAGE, "give only one of --chat and --scope");
    if (o->language.n && (o->language.n != 2 || !is_made_of(o->language, "") ||
                          str_is_digits(str_sub(o->language, 0, 1))))
        return why_err(why, ERR_USAGE,
                       "--language must be two letters, like de");
    return OK;
}

static void telegram_call(const struct platform_order *o,
                          struct platform_call *out)
{
    out->method = STR("POST");
    snprintf(out->url, sizeof(out->url), "%.*s/bot%.*s/%s", STR_ARG(o->api),
             STR_ARG(o->token),
             o->is_clear ? "deleteMyCommands" : "setMyCommands");
    put_headers(out, true);
}

static void telegram_body(const struct platform_order *o,
                          const struct json *commands, struct buf *out)
{
    struct json_out j = json_out(out);
    int64_t number;

    json_open(&j, '{');
    if (commands) {
        json_key(&j, STR("commands"));
        json_put(&j, json_get(commands, STR("commands")));
    }
    if (o->scope.n || o->chat.n) {
        json_key(&j, STR("scope"));
        json_open(&j, '{');
        json_member_text(&j, "type", o->chat.n ? STR("chat") : o->scope);
        if (o->chat.n && str_to_i64(o->chat, &number) == OK)
            json_member_int(&j, "chat_id", number);
        else if (o->chat.n)
            json_member_text(&j, "chat_id", o->chat);
        json_close(&j, '}');
    }
    json_member_some(&j, "language_code", o->language);
    json_close(&j, '}');
}

/* Telegram's answer has no count. */
static int64_t telegram_count(const struct json *answer)
{
    (void)answer;
    return -1;
}

static int64_t telegram_wait_ms(const struct json *answer)
{
    return platform_seconds_ms(
        json_get(json_get(answer, STR("parameters")), STR("retry_after")));
}

static struct str telegram_complaint(const struct json *answer)
{
    return json_str_or(json_get(answer, STR("description")), STR(""));
}

/* Discord. */

static bool discord_is_token(struct str token)
{
    return is_made_of(token, "._-") && str_find(token, '.', 0) < token.n;
}

static enum err discord_check(const struct platform_order *o, struct why *why)
{
    if (o->app.n && !str_is_digits(o->app))
        return why_err(why, ERR_USAGE,
                       "--app must be the number of the application in "
                       "Discord's developer portal");
    if (o->guild.n && !str_is_digits(o->guild))
        return why_err(why, ERR_USAGE, "--guild must be the number of a guild");
    return OK;
}

static void discord_headers(const struct platform_order *o,
                            struct platform_call *out, bool has_body)
{
    snprintf(out->authorization, sizeof(out->authorization), "Bot %.*s",
             STR_ARG(o->token));
    put_headers(out, has_body);
    out->headers[out->n_headers++] =
        (struct fetch_header){STR("Authorization"), str_of(out->authorization)};
    out->headers[out->n_headers++] =
        (struct fetch_header){STR("User-Agent"), STR(DISCORD_AGENT)};
}

static void discord_whoami(const struct platform_order *o,
                           struct platform_call *out)
{
    out->method = STR("GET");
    snprintf(out->url, sizeof(out->url), "%.*s/applications/@me",
             STR_ARG(o->api));
    discord_headers(o, out, false);
}

static void discord_call(const struct platform_order *o,
                         struct platform_call *out)
{
    out->method = STR("PUT");
    snprintf(out->url, sizeof(out->url),
             "%.*s/applications/%.*s%s%.*s/commands", STR_ARG(o->api),
             STR_ARG(o->app), o->guild.n ? "/guilds/" : "", STR_ARG(o->guild));
    discord_headers(o, out, true);
}

static void platform_discord_body(const struct platform_order *o,
                                  const struct json *commands, struct buf *out)
{
    struct json_out j = json_out(out);

    (void)o;
    if (commands) {
        json_put(&j, commands);
    } else {
        json_open(&j, '[');
        json_close(&j, ']');
    }
}

static int64_t discord_count(const struct json *answer)
{
    return answer && answer->type == JSON_ARR ? (int64_t)answer->kids.n : -1;
}

static int64_t discord_wait_ms(const struct json *answer)
{
    return platform_seconds_ms(json_get(answer, STR("retry_after")));
}

/* {"errors":{"0":{"name":{"_errors":[{"code","message"}]}}}}: the first message
 * explains more than "Invalid Form Body". The JSON reader limits the depth. */
static struct str discord_first(const struct json *v)
{
    const struct json *list = json_get(v, STR("_errors"));
    struct str found =
        json_str_or(json_get(json_at(list, 0), STR("message")), STR(""));

    if (found.n || !v || v->type != JSON_OBJ)
        return found;
    for (const struct json *kid = v->kids.first; kid && !found.n;
         kid = kid->next)
        found = discord_first(kid);
    return found;
}

static struct str discord_complaint(const struct json *answer)
{
    struct str first = discord_first(json_get(answer, STR("errors")));

    return first.n ? first
                   : json_str_or(json_get(answer, STR("message")), STR(""));
}

static const struct platform platforms[] = {
    {"telegram", "Telegram", "https://api.telegram.org", "TELEGRAM_BOT_TOKEN",
     "a number, a colon and some letters, from BotFather",
     "scope chat language", false, telegram_is_token, telegram_check, NULL,
     telegram_call, telegram_body, telegram_count, telegram_wait_ms,
     telegram_complaint},
    {"discord", "Discord", "https://discord.com/api/v10", "DISCORD_BOT_TOKEN",
     "three words separated by dots, from the developer portal, without "
     "\"Bot\" in front",
     "app guild", true, discord_is_token, discord_check, discord_whoami,
     discord_call, platform_discord_body, discord_count, discord_wait_ms,
     discord_complaint},
};

const struct platform *platform_find(struct str name)
{
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++)
        if (str_eq_nocase(name, str_of(platforms[i].name)))
            return &platforms[i];
    return NULL;
}

/* The platform's message on one line; empty if it contains the token. */
static void platform_put_error(const struct platform *p,
                               const struct platform_order *o,
                               const struct json *answer,
                               char out[PLATFORM_WORDS_MAX + 1])
{
    struct str words =
        answer ? str_head(p->complaint(answer), PLATFORM_WORDS_MAX) : STR("");

    out[0] = '\0';
    if (!words.n || memmem(words.p, words.n, o->token.p, o->token.n))
        return;
    memcpy(out, words.p, words.n);
    out[words.n] = '\0';
    out[str_tame(out, words.n)] = '\0';
}

enum err platform_judge(const struct platform *p,
                        const struct platform_order *o, int status,
                        const struct json *answer, struct why *why)
{
    char said[PLATFORM_WORDS_MAX + 1];
    const char *colon;

    platform_put_error(p, o, answer, said);
    colon = said[0] ? ": " : "";
    /* Telegram answers 404 to an invalid token. */
    if (status == 401 || (status == 404 && !p->whoami))
        return why_err(why, ERR_NOT_ALLOWED,
                       "%s does not know the bot of this token (status %d%s%s)",
                       p->title, status, colon, said);
    if (status == 403 || status == 404)
        return why_err(why, ERR_NOT_ALLOWED,
                       "%s does not let the bot set commands there (status "
                       "%d%s%s); check the numbers, and that the bot was added "
                       "with the scope applications.commands",
                       p->title, status, colon, said);
    if (status == 429)
        return why_err(why, ERR_RATE_LIMITED,
                       "%s limits the rate of requests%s%s; try again later",
                       p->title, colon, said);
    if (status >= 500)
        return why_err(why, ERR_UNREACHABLE,
                       "%s has an internal error (status %d%s%s); try again "
                       "in a moment",
                       p->title, status, colon, said);
    return why_err(why, ERR_IO, "%s rejected the commands (status %d%s%s)",
                   p->title, status, colon, said);
}
