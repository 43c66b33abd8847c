/* Finds the definition that an agent's url names. */
#include "model/transports.h"

const struct process_def *process_def_find(const struct process_def *list,
                                           size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(list[i].name, name))
            return &list[i];
    return NULL;
}

struct str process_install(enum process_dialect d)
{
    return d == DIALECT_PI ? STR("npm install -g @mariozechner/pi-coding-agent")
                           : STR("");
}

const struct model_def *model_def_find(const struct model_def *list, size_t n,
                                       struct str id, struct str *model)
{
    size_t slash = str_find(id, '/', 0);
    struct str parts[2] = {id, str_sub(id, 0, slash)};

    *model = STR("");
    for (size_t k = 0; k < (slash < id.n ? 2 : 1); k++)
        for (size_t i = 0; i < n; i++)
            if (str_eq_nocase(list[i].name, parts[k])) {
                *model = k && slash + 1 < id.n ? str_sub(id, slash + 1, id.n)
                                               : list[i].model;
                return &list[i];
            }
    return NULL;
}
