#include "model/keyword.h"

#include "test/t.h"

static bool has(const char *keyword, const char *text)
{
    struct str one = str_of(keyword);

    return keyword_find((struct strs){&one, 1}, str_of(text)).n > 0;
}

TEST(a_keyword_occurs_as_whole_words_whatever_the_case)
{
    CHECK(has("code", "write CODE for me"));
    CHECK(has("Code", "code"));
    CHECK(!has("code", "a codebase, decoded"));
    CHECK(has("blog post", "Draft a Blog  post about tea"));
    CHECK(!has("blog post", "blog: post"));
    CHECK(!has("blog post", "a blog"));
    CHECK(!has("blog post", "post blog"));
    CHECK(has("post", "blog/post"));
    CHECK(has("a a b", "a a a b")); /* it restarts within itself */
}

TEST(signs_and_other_scripts_are_words_of_their_own)
{
    CHECK(has("C++", "my c++ code"));
    CHECK(!has("C++", "my c+ code"));
    CHECK(has("node.js", "deploy Node.js now"));
    CHECK(has("caf\xc3\xa9", "the CAFE"));
    CHECK(has("\xe7\xbf\xbb\xe8\xaf\x91", /* to translate */
              "\xe8\xaf\xb7\xe7\xbf\xbb\xe8\xaf\x91\xe6\x96\x87"));
    CHECK(has("\xf0\x9f\x9a\x80", "launch \xf0\x9f\x9a\x80!"));
}

TEST(what_has_no_word_occurs_nowhere)
{
    CHECK(!has("?", "really?"));
    CHECK(!has("", "anything") && !has("  ", "any thing"));
    CHECK(!has("code", "") && !has("code", "?"));
    CHECK(!has("...", "and so on ..."));
}

TEST(the_first_of_several_is_named_as_it_was_written)
{
    const struct str list[] = {STR("nothing"), STR("Blog Post"), STR("tea")};
    struct strs all = {list, 3};

    CHECK_STR(keyword_find(all, STR("tea and a blog post")), "Blog Post");
    CHECK_STR(keyword_find(all, STR("tea")), "tea");
    CHECK(keyword_find(all, STR("coffee")).n == 0);
    CHECK(keyword_find((struct strs){NULL, 0}, STR("coffee")).n == 0);
}

TEST(a_plain_text_has_a_space_behind_every_word)
{
    struct buf out;

    buf_init(&out, 1000);
    CHECK(keyword_plain(&out, STR(" Caf\xc3\xa9-Bar\n42")));
    CHECK_STR(buf_str(&out), "cafe - bar 42 ");
    buf_clear(&out);
    CHECK(!keyword_plain(&out, STR("?!")));
    CHECK_STR(buf_str(&out), "? ! ");
    buf_fini(&out);
}
