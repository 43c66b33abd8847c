/* The output of commands, and the properties of stdout.
 *
 * Output is collected and written once, so that a failed write is noticed and
 * half an answer is rare. Rejected: stdio, whose buffering hides the error
 * until it is too late. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/grid.h"
#include "cli/price.h"
#include "cli/span.h"
#include "speak/speak.h"

enum { NARROWEST = 40, WIDEST = 100 };

const struct arg_option cli_shared_options[] = {
    {"json", NULL, "print JSON, for programs", false},
    {"help", NULL, "show this", false},
    {0},
};

/* The locale by its name: enough to know what a check mark would become. */
static bool is_utf8(char *const *env)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = config_env(env, names[i]);

        if (v && *v)
            return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
    }
    return false;
}

static bool env_is_set(char *const *env, const char *name)
{
    const char *v = config_env(env, name);

    return v && *v;
}

static unsigned window_of(int fd)
{
    struct winsize ws = {0};

    if (ioctl(fd, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
        return 80;
    return ws.ws_col < NARROWEST ? NARROWEST : ws.ws_col;
}

/* Text in longer lines is hard to read. */
static unsigned width_of(int fd)
{
    unsigned window = window_of(fd);

    return window > WIDEST ? WIDEST : window;
}

void cli_init(struct cli *c, const struct command *commands, char *const *env)
{
    const char *term = config_env(env, "TERM");
    bool is_dumb = !term || !*term || strcmp(term, "dumb") == 0;

    *c = (struct cli){.commands = commands, .environ = env};
    c->on_terminal = isatty(STDOUT_FILENO);
    c->colour = c->on_terminal && !is_dumb && !env_is_set(env, "NO_COLOR");
    c->unicode = c->on_terminal && is_utf8(env);
    c->width = c->on_terminal ? width_of(STDOUT_FILENO) : 0;
    c->window = c->on_terminal ? window_of(STDOUT_FILENO) : 0;
    c->notices = !is_dumb && isatty(STDERR_FILENO);
    arena_init(&c->arena, CLI_ARENA_BYTES);
    buf_init(&c->out, CLI_OUT_MAX);
}

void cli_fini(struct cli *c)
{
    arena_fini(&c->arena);
    buf_fini(&c->out);
}

enum exit_status cli_flush(struct cli *c, enum exit_status status)
{
    struct str rest = buf_str(&c->out);

    if (c->out.over) {
        fprintf(stderr, "signalbox: out of memory\n");
        return EXIT_FAILED;
    }
    while (rest.n) {
        ssize_t n = write(STDOUT_FILENO, rest.p, rest.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            /* No message for a reader that has enough, as head does. */
            c->is_cut_off = errno == EPIPE;
            if (!c->is_cut_off)
                fprintf(stderr, "signalbox: cannot write the output: %s\n",
                        strerror(errno));
            buf_clear(&c->out); /* report the error only once */
            return status ? status : EXIT_FAILED;
        }
        rest = str_sub(rest, (size_t)n, rest.n);
    }
    buf_clear(&c->out);
    return status;
}

enum exit_status cli_error(struct cli *c, enum err e, const char *fmt, ...)
{
    /* Wrapped on a terminal, one line in a pipe. */
    struct cli on_stderr = {
        .width = isatty(STDERR_FILENO) ? width_of(STDERR_FILENO) : 0};
    struct buf *line = &on_stderr.out;
    char words[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    /* The message may quote the user's input, control characters included. */
    str_tame(words, strlen(words));
    buf_init(line, 8192);
    if (c->json) {
        speak_error(line, e, str_of(words), STR(""));
    } else {
        buf_addf(line, "signalbox%s%s: ", c->command ? " " : "",
                 c->command ? c->command->name : "");
        cli_wrapped(&on_stderr, (unsigned)line->n, 2, str_of(words));
    }
    fprintf(stderr, "%.*s", STR_ARG(buf_str(line)));
    buf_fini(line);
    return err_row(e)->exit_status;
}

void cli_coloured(struct cli *c, enum colour colour, struct str text)
{
    static const char *const codes[] = {
        [BOLD] = "1", [GREEN] = "32", [YELLOW] = "33", [RED] = "31"};

    if (c->colour)
        buf_addf(&c->out, "\033[%sm%.*s\033[0m", codes[colour], STR_ARG(text));
    else
        buf_add_str(&c->out, text);
}

void cli_wrapped(struct cli *c, unsigned col, unsigned indent, struct str text)
{
    bool is_first = true;

    while (text.n) {
        struct str word = str_cut(&text, ' ');
        unsigned w = 0;

        for (size_t i = 0; i < word.n; i++) /* a character is one column */
            w += ((unsigned char)word.p[i] & 0xc0) != 0x80;

        if (!is_first && c->width && col + 1 + w > c->width) {
            buf_addf(&c->out, "\n%*s", (int)indent, "");
            col = indent;
        } else if (!is_first) {
            buf_add_char(&c->out, ' ');
            col++;
        }
        buf_add_str(&c->out, word);
        col += w;
        is_first = false;
    }
    buf_add_char(&c->out, '\n');
}

void cli_text(struct cli *c, struct str text)
{
    size_t from = c->out.n;

    buf_add_str(&c->out, text);
    if (c->on_terminal && c->out.n > from)
        c->out.n = from + str_tame_text(c->out.p + from, c->out.n - from);
}

struct str cli_tame(struct cli_room *room, struct str s)
{
    struct str head = str_head(s, sizeof(room->text) - sizeof(".."));
    size_t n;

    if (s.n < sizeof(room->text))
        head = s;
    if (head.n)
        memcpy(room->text, head.p, head.n);
    room->text[head.n] = '\0';
    n = str_tame(room->text, head.n);
    if (head.n < s.n) {
        memcpy(room->text + n, "..", sizeof(".."));
        n += 2;
    }
    return (struct str){room->text, n};
}

struct str cli_tamed(struct cli *c, struct str s)
{
    struct cli_room room;
    struct str tame = cli_tame(&room, s);
    char *p = arena_strdup(&c->arena, tame);

    return (struct str){p, p ? tame.n : 0};
}

void cli_indented_text(struct cli *c, unsigned indent, struct str text)
{
    size_t from = c->out.n;

    while (text.n) {
        buf_addf(&c->out, "%*s", (int)indent, "");
        cli_wrapped(c, indent, indent, str_cut(&text, '\n'));
    }
    if (c->out.n > from)
        c->out.n = from + str_tame_text(c->out.p + from, c->out.n - from);
}

void cli_title(struct cli *c, const char *title)
{
    buf_add_char(&c->out, '\n');
    cli_coloured(c, BOLD, str_of(title));
    buf_add_char(&c->out, '\n');
}

void cli_section(struct cli *c, const char *title, struct str text)
{
    if (!text.n)
        return;
    cli_title(c, title);
    cli_indented_text(c, 2, text);
}

void cli_named(struct cli *c, const char *name, struct str value)
{
    struct cli_room room;

    if (!value.n)
        return;
    buf_addf(&c->out, "  %-13s ", name);
    cli_wrapped(c, 16, 16, cli_tame(&room, value));
}

void cli_named_time(struct cli *c, const char *name, int64_t at_ms)
{
    char text[96];

    if (!at_ms)
        return;
    snprintf(text, sizeof(text), "%s, %s ago", cli_time(at_ms).text,
             span_write(cli_now_ms() - at_ms).text);
    cli_named(c, name, str_of(text));
}

/* The JSON writer leaves some characters unescaped that could control a
 * terminal. They occur only in strings, where an escape means the same. */
void cli_json_line(struct buf *out, const struct json *v)
{
    struct json_out o;
    struct str rest;
    struct buf plain;

    buf_init(&plain, CLI_OUT_MAX);
    o = json_out(&plain);
    json_put(&o, v);
    rest = buf_str(&plain);
    for (size_t i = 0, from = 0; i <= rest.n; i++) {
        size_t bad = str_steers(str_sub(rest, i, rest.n));

        if (i < rest.n && !bad)
            continue;
        buf_add_str(out, str_sub(rest, from, i));
        if (bad) { /* one to three bytes of UTF-8 */
            unsigned code = (unsigned char)rest.p[i];

            if (bad > 1)
                code &= bad == 2 ? 31 : 15;
            for (size_t k = 1; k < bad; k++)
                code = code << 6 | ((unsigned char)rest.p[i + k] & 63);
            buf_addf(out, "\\u%04x", code);
        }
        i += bad ? bad - 1 : 0;
        from = i + 1;
    }
    buf_add_char(out, '\n');
    out->over = out->over || plain.over;
    buf_fini(&plain);
}

struct cli_time cli_time(int64_t at_ms)
{
    time_t at_s = (time_t)(at_ms / 1000);
    struct cli_time out = {"-"};
    struct tm tm;

    if (at_ms > 0 && localtime_r(&at_s, &tm))
        strftime(out.text, sizeof(out.text), "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}

double cli_mono_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int64_t cli_now_ms(void)
{
    struct clock clock = clock_system();

    return clock.wall_ms(clock.ctx);
}

bool cli_max_cost(struct cli *c, int64_t *out, enum exit_status *status)
{
    struct str text = args_get(&c->args, "max-cost");

    if (!args_has(&c->args, "max-cost") || price_read(text, out) == OK)
        return true;
    *status = cli_error(c, ERR_USAGE,
                        "--max-cost is \"%.*s\"; it must be an amount from 0 "
                        "to 1000000, like 0.05",
                        STR_ARG(str_head(text, 64)));
    return false;
}

bool cli_number(struct cli *c, const char *option, int64_t least, int64_t most,
                int64_t fallback, int64_t *out, enum exit_status *status)
{
    struct str text = args_get(&c->args, option);

    *out = fallback;
    if (!text.n ||
        (str_to_i64(text, out) == OK && *out >= least && *out <= most))
        return true;
    text = str_head(text, 64);
    if (most == INT64_MAX)
        *status = cli_error(c, ERR_USAGE,
                            "--%s is \"%.*s\"; it must be a whole number, "
                            "%" PRId64 " or more",
                            option, STR_ARG(text), least);
    else
        *status = cli_error(c, ERR_USAGE,
                            "--%s is \"%.*s\"; it must be a whole number from "
                            "%" PRId64 " to %" PRId64,
                            option, STR_ARG(text), least, most);
    return false;
}

bool cli_real(struct cli *c, const char *option, double least, double most,
              double fallback, double *out, enum exit_status *status)
{
    struct str text = args_get(&c->args, option);

    *out = fallback;
    if (!text.n)
        return true;
    *out = json_real_or(json_parse(&c->arena, text, 0, NULL), NAN);
    if (*out >= least && *out <= most)
        return true;
    *status = cli_error(c, ERR_USAGE,
                        "--%s is \"%.*s\"; it must be a number from %g to %g",
                        option, STR_ARG(str_head(text, 64)), least, most);
    return false;
}

bool cli_one_of(struct cli *c, const char *option, const char *words,
                struct str *out, enum exit_status *status)
{
    struct str given = args_get(&c->args, option), rest = str_of(words);
    struct str_guess g = str_guess(given);

    while (given.n && rest.n) {
        struct str word = str_cut(&rest, ' ');

        if (str_eq_nocase(word, given)) {
            *out = word;
            return true;
        }
        str_guess_offer(&g, word, str_distance(given, word));
    }
    if (!given.n)
        return true;
    given = str_head(given, 64);
    *status =
        g.name.n
            ? cli_error(c, ERR_USAGE, "--%s is \"%.*s\"; did you mean %.*s?",
                        option, STR_ARG(given), STR_ARG(g.name))
            : cli_error(c, ERR_USAGE, "--%s is \"%.*s\"; it must be one of: %s",
                        option, STR_ARG(given), words);
    return false;
}

static void new_line(struct buf *out, unsigned depth)
{
    buf_addf(out, "\n%*s", (int)depth * 2, "");
}

void cli_indented(struct buf *out, struct str json)
{
    bool in_string = false, is_empty = false; /* the last bracket */
    unsigned depth = 0;

    for (size_t i = 0; i < json.n; i++) {
        char ch = json.p[i];

        if (in_string && ch == '\\' && i + 1 < json.n)
            buf_add_char(out, json.p[i++]);
        else if (ch == '"')
            in_string = !in_string;
        if (!in_string && (ch == '}' || ch == ']') && !is_empty)
            new_line(out, --depth);
        buf_add_char(out, json.p[i]);
        is_empty = !in_string && i + 1 < json.n &&
                   ((ch == '{' && json.p[i + 1] == '}') ||
                    (ch == '[' && json.p[i + 1] == ']'));
        if (in_string || is_empty)
            continue;
        if (ch == '{' || ch == '[')
            new_line(out, ++depth);
        else if (ch == ',')
            new_line(out, depth);
        else if (ch == ':')
            buf_add_char(out, ' ');
    }
    buf_add_char(out, '\n');
}

/* The progress bar shows nothing for the first second, then one line on stderr
 * that is redrawn. */

enum { BAR_PATIENCE_MS = 1000, BAR_CELLS = 30 };

static int64_t bar_mono_ms(void)
{
    struct clock clock = clock_system();

    return clock.mono_ms(clock.ctx);
}

void cli_bar_start(struct cli_bar *b, struct cli *c, const char *activity)
{
    *b = (struct cli_bar){
        .is_wanted = c->notices && !c->json,
        .activity = activity,
        .began_ms = bar_mono_ms(),
        .shown = -1,
    };
}

void cli_bar_move(void *bar, int permille)
{
    struct cli_bar *b = bar;
    char cells[BAR_CELLS + 1];
    int n = permille * BAR_CELLS / 1000;

    if (!b->is_wanted || permille / 10 == b->shown ||
        bar_mono_ms() - b->began_ms < BAR_PATIENCE_MS)
        return;
    for (int i = 0; i < BAR_CELLS; i++)
        cells[i] = i < n ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    b->shown = permille / 10;
    fprintf(stderr, "\r%s [%s] %d%%\033[K", b->activity, cells, b->shown);
}

void cli_bar_count(struct cli_bar *b, struct cli *c, const char *activity,
                   size_t n)
{
    cli_bar_start(b, c, activity);
    b->n = n;
}

/* Not at every step: reading the clock takes as long as a short step. */
void cli_bar_step(struct cli_bar *b)
{
    if (++b->at % 16 == 0)
        cli_bar_move(b, (int)(b->at * 1000 / b->n));
}

void cli_bar_end(struct cli_bar *b)
{
    if (b->shown >= 0)
        fprintf(stderr, "\r\033[K");
    b->shown = -1;
}
