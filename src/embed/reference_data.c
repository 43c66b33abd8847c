/* The bytes of data/reference.txt in an object of their own, like the table's
 * (inside_data.c). */
#include "embed/reference_file.h"

__asm__(".pushsection .rodata\n"
        ".global embed_reference_begin, embed_reference_end\n"
        ".hidden embed_reference_begin, embed_reference_end\n"
        "embed_reference_begin:\n"
        ".incbin \"" EMBED_REFERENCE_FILE "\"\n"
        "embed_reference_end:\n"
        ".popsection\n");
