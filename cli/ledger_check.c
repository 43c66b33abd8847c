/* ledger check: verify all entries, on the server or in the data folder. The
 * exit status is 1 if something is wrong. */
#include "cli/ledger.h"

#include "cli/offline.h"
#include "cli/price.h"
#include "speak/speak.h"
#include "walk/ledger_audit.h"

enum { CHECK_MS = 10 * 60 * 1000 };

static void show_count(struct cli *c, int64_t n, const char *one,
                       const char *many)
{
    buf_addf(&c->out, "%lld %s", (long long)n, n == 1 ? one : many);
}

static void ledger_check_show_problems(struct cli *c, const struct json *is)
{
    const struct json *problems = json_get(is, STR("problems"));
    int64_t n = cli_field_int(is, STR("problems_total"));
    struct cli_room room;

    cli_coloured(c, RED, STR("The ledger is inconsistent: "));
    show_count(c, n, "problem", "problems");
    buf_add_str(&c->out, STR(".\n"));
    if (problems && problems->type == JSON_ARR)
        JSON_EACH(p, problems)
        {
            buf_add_str(&c->out, STR("  "));
            cli_wrapped(c, 2, 4, cli_tame(&room, json_str_or(p, STR(""))));
        }
}

static enum exit_status ledger_check_show(struct cli *c, const struct json *is)
{
    bool is_right = json_bool_or(json_get(is, STR("is_right")), false);

    if (c->json) {
        cli_json_line(&c->out, is);
        return is_right ? EXIT_DONE : EXIT_FAILED;
    }
    if (is_right) {
        cli_coloured(c, GREEN, STR("The ledger is consistent."));
        buf_add_char(&c->out, '\n');
    } else {
        ledger_check_show_problems(c, is);
    }
    buf_add_str(&c->out, STR("  "));
    show_count(c, cli_field_int(is, STR("accounts")), "account, ",
               "accounts, ");
    show_count(c, cli_field_int(is, STR("postings")), "posting, ",
               "postings, ");
    show_count(c, cli_field_int(is, STR("entries")), "entry; ", "entries; ");
    buf_addf(&c->out, "%s is reserved, for ",
             amount_write(cli_field_int(is, STR("reserved_micros"))).text);
    show_count(c, cli_field_int(is, STR("reservations")), "turn\n", "turns\n");
    if (cli_field_int(is, STR("owed_micros")))
        buf_addf(&c->out,
                 "  %s is owed by creators, for refunds after a payout\n",
                 amount_write(cli_field_int(is, STR("owed_micros"))).text);
    return is_right ? EXIT_DONE : EXIT_FAILED;
}

/* Without a server. */

static enum exit_status show_report(struct cli *c,
                                    const struct ledger_report *r)
{
    struct speak_books b = {
        .n_accounts = r->n_accounts,
        .n_entries = r->n_entries,
        .n_postings = r->n_postings,
        .n_turns = r->n_turns,
        .n_reserved = r->n_reserved,
        .reserved_micros = r->reserved,
        .owed_micros = r->owed,
        .n_problems = r->n_problems,
        .problems = r->problems,
        .n_shown = r->n_problems < LEDGER_PROBLEMS ? (size_t)r->n_problems
                                                   : LEDGER_PROBLEMS,
    };
    enum exit_status status;
    struct json *is;
    struct json_out o;
    struct buf doc;

    buf_init(&doc, 256 * 1024);
    o = json_out(&doc);
    speak_books(&o, &b);
    is = json_parse(&c->arena, buf_str(&doc), 0, NULL);
    status = ledger_check_show(c, is);
    buf_fini(&doc);
    return status;
}

static enum exit_status ledger_check_store(struct cli *c, struct store *s)
{
    struct ledger_report r;
    enum err e = ledger_audit_store(s, &r);

    if (e)
        return cli_error(c, e, "the ledger cannot be read: %s",
                         err_row(e)->wording);
    return show_report(c, &r);
}

enum exit_status cli_ledger_check(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;

    (void)operand;
    if (cli_is_offline(c, &status))
        return cli_store_offline(c, ledger_check_store);
    if (status || !(cl = client_new(c, &status)))
        return status;
    if (client_call(cl,
                    &(struct client_request){.method = "GET",
                                             .path = STR("/api/ledger/check"),
                                             .timeout_ms = CHECK_MS,
                                             .notice = "Checking"}))
        status = client_fail(cl);
    else
        status = ledger_check_show(c, client_reply(cl)->json);
    client_free(cl);
    return status;
}
