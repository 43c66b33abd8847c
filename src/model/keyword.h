#ifndef MODEL_KEYWORD_H
#define MODEL_KEYWORD_H

/* keyword: whether a routing keyword occurs in a text.
 *
 * It does as whole words, whatever the case and accents: both are taken apart
 * as base/words does it, and the words of the keyword must stand side by side
 * in the text. A sign is a word of its own, so "C++" is found in "my c++ code"
 * and "blog post" not in "blog: post". A keyword without a letter or digit
 * occurs nowhere.
 *
 * Pure. Threads: any. */

#include "base/buf.h"
#include "model/agent.h"

/* The words of a text in small letters, each with a space behind it, behind
 * what is in `out`. Whether there is any that is more than a sign. */
bool keyword_plain(struct buf *out, struct str text);

/* The first of the keywords that occurs in a text, pointing into the list;
 * empty: none does. */
struct str keyword_find(struct strs keywords, struct str text);

/* Whether a word, in small letters, is one that people say to every agent. */
bool keyword_is_everyday(struct str word);

#endif
