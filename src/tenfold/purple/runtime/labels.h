/* Labels of what is met again inside itself, or, where asked for, of all that is met twice. */
#ifndef PURPLE_LABELS_H
#define PURPLE_LABELS_H

#include "purple_all.h"

typedef struct { Value *keys; int64_t *marks; size_t room, used; int64_t next; } PuLabels;

bool pu_is_container(Value v);
void pu_find_labels(PuLabels *labels, Value v, bool shared);
int64_t pu_label(PuLabels *labels, Value v, bool *is_first); /* -1 where it has none */
void pu_free_labels(PuLabels *labels);

#endif
