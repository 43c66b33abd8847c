/* backup and restore: copy the database while the server runs, and replace it
 * with such a copy. The folder is locked during a restore, so that no server
 * can run on it. */
#include "cli/cli.h"

#include <sys/stat.h>

#include "base/json.h"
#include "store/store.h"

const struct arg_option cli_backup_options[] = {CLI_DATA_OPTIONS, {0}};

enum exit_status cli_backup(struct cli *c)
{
    struct json_out o = json_out(&c->out);
    struct str file = c->args.operands[0], folder;
    struct why why = {""};
    struct cli_bar bar;
    enum exit_status status;
    struct stat st;
    int64_t bytes;
    enum err e;

    if (c->args.n_operands == 0)
        return cli_error(c, ERR_USAGE,
                         "name the new file: signalbox backup FILE");
    if (!cli_data(c, &folder, &status))
        return status;
    cli_bar_start(&bar, c, "copying");
    e = store_backup(folder, file, cli_bar_move, &bar, &why);
    cli_bar_end(&bar);
    if (e)
        return cli_error(c, e, "%s", why.text);
    bytes = stat(file.p, &st) == 0 ? st.st_size : 0;
    if (!c->json) {
        cli_coloured(c, GREEN, STR("done"));
        buf_addf(&c->out, ": %.*s, %lld KiB, checked\n",
                 STR_ARG(cli_tamed(c, file)), (long long)(bytes + 1023) / 1024);
        return EXIT_DONE;
    }
    json_open(&o, '{');
    json_member_text(&o, "file", file);
    json_member_int(&o, "bytes", bytes);
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
    return EXIT_DONE;
}

const struct arg_option cli_restore_options[] = {CLI_DATA_OPTIONS, {0}};

enum exit_status cli_restore(struct cli *c)
{
    struct json_out o = json_out(&c->out);
    struct why why = {""};
    struct cli_bar bar;
    struct store_folder f;
    struct str folder;
    char kept[256];
    enum exit_status status;
    enum err e;

    if (c->args.n_operands == 0)
        return cli_error(c, ERR_USAGE,
                         "name the backup: signalbox restore FILE");
    if (!cli_data(c, &folder, &status))
        return status;
    e = store_folder_open(&f, folder, &why);
    if (e)
        return cli_error(c, e, "%s", why.text);
    cli_bar_start(&bar, c, "copying");
    e = store_restore(&f, c->args.operands[0], kept, cli_bar_move, &bar, &why);
    cli_bar_end(&bar);
    status = e ? cli_error(c, e, "%s", why.text) : EXIT_DONE;
    if (!e && c->json) {
        json_open(&o, '{');
        json_member_text(&o, "data", str_of(f.path));
        json_member_str(&o, "kept", str_of(kept));
        json_member_str(&o, "remark", str_of(why.text));
        json_close(&o, '}');
        buf_add_char(&c->out, '\n');
    } else if (!e) {
        cli_coloured(c, GREEN, STR("done"));
        buf_addf(&c->out, ": %.*s now contains %.*s\n",
                 STR_ARG(cli_tamed(c, str_of(f.path))),
                 STR_ARG(cli_tamed(c, c->args.operands[0])));
        if (kept[0])
            buf_addf(&c->out, "the old database is kept as %s\n", kept);
        if (why.text[0])
            buf_addf(&c->out, "%s\n", why.text);
    }
    store_folder_close(&f);
    return status;
}
