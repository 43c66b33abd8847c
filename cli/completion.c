/* completion: a script for bash, generated from the tables of help. It has
 * three tables (options, their values, operands) and a driver that reads the
 * words typed so far. It needs only bash: the package bash-completion merely
 * finds it.
 *
 * `compgen -W` offers the words and expands them. All of them are our own,
 * except the names of agents, which are compared separately. */
#include "cli/cli.h"

static const char head[] =
    "# bash completion for signalbox, made by: signalbox completion bash\n"
    "\n";

static const char driver[] =
    "# The names of agents, where a server may be asked for them.\n"
    "_signalbox_agents() {\n"
    "    [ -n \"${SIGNALBOX_TOKEN-}\" ] || return 0\n"
    "    timeout 1 \"${COMP_WORDS[0]}\" agents --json --limit 1000 "
    "</dev/null 2>/dev/null |\n"
    "        sed -n 's/^{\"name\":\"\\([A-Za-z0-9._-]*\\)\".*/\\1/p'\n"
    "}\n"
    "\n"
    "# _signalbox_offer WORDS CURRENT: words, or what @kinds stand for.\n"
    "_signalbox_offer() {\n"
    "    local kind name\n"
    "    for kind in $1; do\n"
    "        case $kind in\n"
    "        @files)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
    "< <(compgen -f -- \"$2\") ;;\n"
    "        @folders)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
    "< <(compgen -d -- \"$2\") ;;\n"
    "        @agents)\n"
    "            while read -r name; do\n"
    "                [[ $name != \"$2\"* ]] || COMPREPLY+=(\"$name\")\n"
    "            done < <(_signalbox_agents) ;;\n"
    "        @settings)\n"
    "            compopt -o nospace 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
    "< <(compgen -S = -W \"$(_signalbox_settings)\" -- \"$2\") ;;\n"
    "        @commands)\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
    "< <(compgen -W \"$(_signalbox_commands)\" -- \"$2\") ;;\n"
    "        *)\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
    "< <(compgen -W \"$kind\" -- \"$2\") ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "\n"
    "_signalbox() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} command='' sub='' key "
    "value=''\n"
    "    local option='' i n=0 IFS=$' \\t\\n'\n"
    "    COMPREPLY=()\n"
    "    # The words before: the command, its second word, n operands behind\n"
    "    # them, and an option whose value comes next.\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        key=${COMP_WORDS[i]}\n"
    "        if [ -n \"$option\" ] && [ \"$key\" = = ]; then\n"
    "            continue # bash takes --option=value for three words\n"
    "        elif [ -n \"$option\" ]; then\n"
    "            option=\n"
    "        elif [[ $key == --?* ]]; then\n"
    "            value=$(_signalbox_value \"$command $key\")\n"
    "            [ -z \"$value\" ] || option=$key\n"
    "        elif [ -z \"$command\" ]; then\n"
    "            command=$key\n"
    "        elif [ -z \"$sub\" ] && [ \"$n\" = 0 ] &&\n"
    "            [[ \" $(_signalbox_subs \"$command\") \" == *\" $key \"* ]]; "
    "then\n"
    "            sub=$key\n"
    "        else\n"
    "            n=$((n + 1))\n"
    "        fi\n"
    "    done\n"
    "    [ \"$current\" != = ] || current=\n"
    "    if [ -n \"$option\" ]; then\n"
    "        _signalbox_offer \"${value#-}\" \"$current\"\n"
    "    elif [ -z \"$command\" ]; then\n"
    "        _signalbox_offer '@commands --help --version' \"$current\"\n"
    "    elif [[ $current == -* ]]; then\n"
    "        _signalbox_offer \"$(_signalbox_options \"$command $sub\")\" "
    "\"$current\"\n"
    "    else\n"
    "        [ -n \"$sub\" ] || [ \"$n\" != 0 ] ||\n"
    "            _signalbox_offer \"$(_signalbox_subs \"$command\")\" "
    "\"$current\"\n"
    "        _signalbox_offer \"$(_signalbox_operand \"$command $sub\" "
    "\"$n\")\" \"$current\"\n"
    "    fi\n"
    "}\n"
    "complete -F _signalbox signalbox\n";

static void add_all_options(struct buf *out, const struct command *m,
                            const struct sub *s)
{
    const struct arg_option *tables[] = {m->options, cli_shared_options};

    buf_addf(out, "    '%s %s%s) echo", m->name, s ? s->name : "",
             s ? "'" : "'*");
    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *o = tables[t]; o && o->name; o++)
            if (!s || cli_sub_takes(m->subs, s, o->name))
                buf_addf(out, " --%s", o->name);
    buf_add_str(out, STR(" ;;\n"));
}

/* A line for each operand with known words; a repeated one covers all that
 * follow. */
static void add_operands_of(struct cli *c, const char *command,
                            const char *second, const char *operands)
{
    struct str rest = str_of(operands);
    struct buf words;

    buf_init(&words, 4096);
    for (int i = 0; rest.n; i++) {
        struct str word = str_cut(&rest, ' ');
        bool repeats = word.p[word.n - 1] == '.';
        char name[64]; /* of "[NAME]", "FILE...", "telegram|discord" */
        size_t n = 0;

        for (size_t k = 0; k < word.n && n + 1 < sizeof(name); k++)
            if (!strchr("[].", word.p[k]))
                name[n++] = word.p[k] == '|' ? ' ' : word.p[k];
        name[n] = '\0';
        buf_clear(&words);
        buf_add_str(&words,
                    str_of(name[0] >= 'a' ? name : cli_words(command, name)));
        if (words.n && repeats)
            buf_addf(&c->out, "    '%s %s '*)", command, second);
        else if (words.n)
            buf_addf(&c->out, "    '%s %s %d')", command, second, i);
        if (words.n)
            buf_addf(&c->out, " echo '%.*s' ;;\n", STR_ARG(buf_str(&words)));
    }
    buf_fini(&words);
}

/* Every command that the overview has. */
#define EACH_SHOWN(m, c)                                        \
    for (const struct command *m = (c)->commands; m->name; m++) \
        if (*m->summary)

static enum exit_status for_bash(struct cli *c, struct str operand)
{
    struct buf *out = &c->out;
    struct config_setting setting;

    (void)operand;
    if (c->json)
        return cli_error(c, ERR_USAGE, "the script is not available as JSON");
    buf_add_str(out, str_of(head));
    buf_add_str(out, STR("_signalbox_commands() {\n    echo"));
    EACH_SHOWN(m, c)
    buf_addf(out, " %s", m->name);
    buf_add_str(out, STR("\n}\n\n_signalbox_settings() {\n    echo"));
    for (size_t i = 0; config_setting(i, &setting); i++)
        buf_addf(out, " %s", setting.path);
    buf_add_str(out, STR("\n}\n\n_signalbox_subs() {\n    case $1 in\n"));
    EACH_SHOWN(m, c)
    {
        if (m->subs)
            buf_addf(out, "    %s) echo", m->name);
        for (const struct sub *s = m->subs; s && s->name; s++)
            buf_addf(out, " %s", s->name);
        if (m->subs)
            buf_add_str(out, STR(" ;;\n"));
    }
    buf_add_str(out,
                STR("    esac\n}\n\n_signalbox_options() {\n    case $1 in\n"));
    EACH_SHOWN(m, c)
    {
        for (const struct sub *s = m->subs; s && s->name; s++)
            add_all_options(out, m, s);
        add_all_options(out, m, NULL);
    }
    /* "-" for a value without known words. */
    buf_add_str(out,
                STR("    esac\n}\n\n_signalbox_value() {\n    case $1 in\n"));
    EACH_SHOWN(m, c)
    for (const struct arg_option *o = m->options; o && o->name; o++)
        if (o->value)
            buf_addf(out, "    '%s --%s') echo '-%s' ;;\n", m->name, o->name,
                     cli_option_words(m->name, o));
    buf_add_str(out, STR("    esac\n}\n\n_signalbox_operand() {\n    case "
                         "\"$1 $2\" in\n"));
    EACH_SHOWN(m, c)
    {
        for (const struct sub *s = m->subs; s && s->name; s++)
            add_operands_of(c, m->name, s->name, s->operand);
        if (!m->subs)
            add_operands_of(c, m->name, "", m->operands);
    }
    /* gate takes a file or a subcommand. */
    add_operands_of(c, "gate", "", "ENVELOPE");
    buf_add_str(out, STR("    esac\n}\n\n"));
    buf_add_str(out, str_of(driver));
    return EXIT_DONE;
}

const struct sub cli_completion_subs[] = {
    {"bash", NULL, "", .run = for_bash},
    {0},
};
