/* Resolving paths, on a real disk. */
#include "base/paths.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/lib/folder.h"
#include "test/t.h"

static const char *real_of(const char *path)
{
    static char out[PATH_MAX];

    CHECK(path_real(str_of(path), out));
    return out;
}

TEST(what_is_there_is_followed_and_the_rest_is_taken_as_it_is_written)
{
    char folder[] = "/tmp/signalbox-paths-XXXXXX", real[PATH_MAX],
         path[PATH_MAX + 32], want[PATH_MAX + 32];

    CHECK(mkdtemp(folder));
    CHECK(path_real(str_of(folder), real));
    snprintf(path, sizeof(path), "%s/deep", folder);
    CHECK(mkdir(path, 0755) == 0);
    snprintf(path, sizeof(path), "%s/link", folder);
    CHECK(symlink("deep", path) == 0);
    snprintf(want, sizeof(want), "%s/deep", real);
    CHECK(strcmp(real_of(path), want) == 0);
    snprintf(path, sizeof(path), "%s/link/not/there/", folder);
    snprintf(want, sizeof(want), "%s/deep/not/there", real);
    CHECK(strcmp(real_of(path), want) == 0);
    CHECK(strcmp(real_of("/"), "/") == 0);
    CHECK(strcmp(real_of("/not-there-at-all"), "/not-there-at-all") == 0);
    CHECK(strcmp(real_of("/not-there-at-all/a"), "/not-there-at-all/a") == 0);
    folder_remove(folder);
}

TEST(a_path_lies_in_a_folder_by_its_parts_and_not_by_its_letters)
{
    CHECK(path_is_within("/a/b", "/a"));
    CHECK(path_is_within("/a", "/a"));
    CHECK(path_is_within("/a", "/"));
    CHECK(!path_is_within("/ab", "/a"));
    CHECK(!path_is_within("/a", "/a/b"));
}

TEST(a_path_beside_the_data_neither_holds_it_nor_lies_in_it)
{
    struct why why = {""};

    CHECK(path_beside_data(STR("/n/ws"), "/n/data", "x", &why) == OK);
    CHECK(path_beside_data(STR("/n/data2"), "/n/data", "x", &why) == OK);
    CHECK(path_beside_data(STR(""), "/n/data", "x", &why) == OK);
    CHECK(path_beside_data(STR("/n"), "/n/data", "the workspace", &why) ==
          ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "the workspace /n holds"));
    CHECK(path_beside_data(STR("/n/data/ws/"), "/n/data", "x", &why) ==
          ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "lies in"));
    CHECK(path_beside_data(STR("/n/data"), "/n/data", "x", &why) ==
          ERR_NOT_ALLOWED);
}

TEST(a_path_that_is_too_long_is_none)
{
    static char path[PATH_MAX + 10];
    char out[PATH_MAX];

    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    CHECK(!path_real(str_of(path), out));
}
