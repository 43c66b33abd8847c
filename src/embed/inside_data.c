/* The bytes of data/table.sbt, as they are, in an object of their own: only
 * programs that open them are that much larger. Read-only and never written,
 * their pages come from the file when they are first touched, and all processes
 * share them.
 *
 * Not `ld -b binary`, which knows no alignment, and not an array in C, with
 * which the compiler is busy for 20 seconds. embed/inside_file.h has the name
 * of the file; the build makes it anew whenever the file changes, and so this
 * object too. */
#include "embed/inside_file.h"

__asm__(".pushsection .rodata\n"
        ".global embed_inside_begin, embed_inside_end\n"
        ".hidden embed_inside_begin, embed_inside_end\n"
        ".balign 64\n"
        "embed_inside_begin:\n"
        ".incbin \"" EMBED_INSIDE_FILE "\"\n"
        "embed_inside_end:\n"
        ".popsection\n");
