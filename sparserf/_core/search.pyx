"""The k largest scores, with a fixed rule for ties: the lower index wins."""
from libc.stddef cimport ptrdiff_t


cdef inline bint is_better(const double *score, ptrdiff_t a, ptrdiff_t b) noexcept nogil:
    return score[a] > score[b] or (score[a] == score[b] and a < b)


cdef void sift_down(ptrdiff_t *heap, ptrdiff_t n, ptrdiff_t i, const double *score) noexcept nogil:
    """Move the root down to where it belongs; the root of the heap is the worst of its indices."""
    cdef ptrdiff_t child, kept = heap[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and is_better(score, heap[child], heap[child + 1]):
            child += 1
        if not is_better(score, kept, heap[child]):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = kept


def top_k(const double[::1] score not None, double threshold, ptrdiff_t[::1] out not None):
    """Write the indices of the len(out) largest scores above the threshold into out, best first.

    Return how many there are.
    """
    cdef ptrdiff_t i, n = 0, k = out.shape[0]
    cdef ptrdiff_t *heap
    if k == 0 or score.shape[0] == 0:
        return 0
    heap = &out[0]
    with nogil:
        for i in range(score.shape[0]):
            if not score[i] > threshold:
                continue
            if n < k:
                heap[n] = i
                n += 1
                if n == k:
                    heapify(heap, n, &score[0])
            elif is_better(&score[0], i, heap[0]):
                heap[0] = i
                sift_down(heap, n, 0, &score[0])
        if n < k:
            heapify(heap, n, &score[0])
        sort_heap(heap, n, &score[0])
    return n


cdef void heapify(ptrdiff_t *heap, ptrdiff_t n, const double *score) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n // 2 - 1, -1, -1):
        sift_down(heap, n, i, score)


cdef void sort_heap(ptrdiff_t *heap, ptrdiff_t n, const double *score) noexcept nogil:
    """Move the worst to the end, again and again, so that the best comes first."""
    cdef ptrdiff_t end, worst
    for end in range(n - 1, 0, -1):
        worst = heap[0]
        heap[0] = heap[end]
        heap[end] = worst
        sift_down(heap, end, 0, score)
