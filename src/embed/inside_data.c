/* The bytes of data/table.sbt in an object of their own, so only programs that
 * open them contain them. They are read-only: their pages are loaded from the
 * file when first touched, and all processes share them.
 *
 * Rejected: `ld -b binary`, which knows no alignment, and an array in C, which
 * takes the compiler 20 seconds. embed/inside_file.h has the name of the file;
 * the build rewrites it whenever the file changes, and so rebuilds this
 * object. */
#include "embed/inside_file.h"

__asm__(".pushsection .rodata\n"
        ".global embed_inside_begin, embed_inside_end\n"
        ".hidden embed_inside_begin, embed_inside_end\n"
        ".balign 64\n"
        "embed_inside_begin:\n"
        ".incbin \"" EMBED_INSIDE_FILE "\"\n"
        "embed_inside_end:\n"
        ".popsection\n");
