/* The line of the source that an error points at, with carets under what failed where a terminal shows it. */
#include "purple_all.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 100 }; /* characters of a line */

static bool within(uint32_t code, const uint32_t (*ranges)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

/* How many columns of a terminal a character takes: two for those of East Asian scripts and pictures, none for marks that
   join the character before them. */
static int columns(uint32_t code) {
    static const uint32_t WIDE[][2] = {
        {0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0x3247}, {0x3250, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},
        {0xAC00, 0xD7AF}, {0xF900, 0xFAFF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6},
        {0x17000, 0x18CFF}, {0x1B000, 0x1B2FF}, {0x1F300, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C},
        {0x1F3A0, 0x1F3CA}, {0x1F400, 0x1F43E}, {0x1F442, 0x1F4FC}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5},
        {0x1F90C, 0x1F9FF}, {0x20000, 0x3FFFD}};
    static const uint32_t JOINED[][2] = {
        {0x300, 0x34E}, {0x350, 0x36F}, {0x483, 0x487}, {0x591, 0x5BD}, {0x610, 0x61A}, {0x64B, 0x65F}, {0x1AB0, 0x1AFF},
        {0x1DC0, 0x1DFF}, {0x20D0, 0x20DC}, {0x3099, 0x309A}, {0xFE20, 0xFE2F}};
    if (within(code, JOINED, sizeof JOINED / sizeof *JOINED)) return 0;
    return within(code, WIDE, sizeof WIDE / sizeof *WIDE) ? 2 : 1;
}

/* The line of a file, without its end; NULL where there is none. The caller frees it. */
static char *read_row(const char *path, int line) {
    FILE *file = fopen(path, "r");
    PuBuffer row = {0};
    int c = EOF;
    if (!file) return NULL;
    for (int at = 1; at <= line && (at == 1 || c != EOF); at++) {
        row.length = 0;
        while ((c = fgetc(file)) != EOF && c != '\n') pu_put(&row, &(char){(char)c}, 1);
    }
    fclose(file);
    pu_put(&row, "", 1);
    row.text[strcspn(row.text, "\r")] = 0;
    return row.text;
}

void pu_show_line(const PuPlace *place) {
    char *row = read_row(place->file, place->line);
    if (!row || !pu_is_utf8(row, (int64_t)strlen(row))) { /* it is another file by now */
        free(row);
        return;
    }
    PuBuffer text = {0};
    int first = place->column - 1 > SHOWN / 2 ? place->column - 20 : 1, indent = first > 1 ? 1 : 0, carets = 0;
    int end = first + SHOWN - indent;
    if (first > 1) pu_put_text(&text, "…");
    const char *mark = "\xEF\xBB\xBF", *at = place->line == 1 && !strncmp(row, mark, 3) ? row + 3 : row;
    for (int column = 1; *at && column < end; column++) {
        uint32_t code;
        int bytes = pu_decode(at, &code);
        bool plain = code >= 32 && code != 127;
        if (column >= first) pu_put(&text, plain ? at : " ", plain ? (size_t)bytes : 1);
        int taken = column < first ? 0 : plain ? columns(code) : 1;
        if (column < place->column) indent += taken;
        else if (column < place->column + place->width) carets += taken;
        at += bytes;
    }
    fprintf(stderr, "  %.*s\n  %*s", (int)text.length, text.text, indent, "");
    for (int i = 0; i < (carets ? carets : 1); i++) fputc('^', stderr);
    fputc('\n', stderr);
    free(text.text);
    free(row);
}
