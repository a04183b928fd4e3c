# linalg_*: linear algebra under the names and with the results that R's torch users know.

linalg_cholesky <- function(A) torch_linalg_cholesky(A)

linalg_cholesky_ex <- function(A, check_errors = FALSE) {
  named_results(torch_linalg_cholesky_ex(A, check_errors = check_errors), c("L", "info"))
}

linalg_cond <- function(A, p = NULL) torch_linalg_cond(A, p)

linalg_det <- function(A) torch_linalg_det(A)

linalg_eig <- function(A) torch_linalg_eig(A)

linalg_eigh <- function(A, UPLO = "L") torch_linalg_eigh(A, UPLO)

linalg_eigvals <- function(A) torch_linalg_eigvals(A)

linalg_eigvalsh <- function(A, UPLO = "L") torch_linalg_eigvalsh(A, UPLO)

linalg_householder_product <- function(A, tau) torch_linalg_householder_product(A, tau)

linalg_inv <- function(A) torch_linalg_inv(A)

linalg_inv_ex <- function(A, check_errors = FALSE) {
  named_results(torch_linalg_inv_ex(A, check_errors = check_errors), c("inverse", "info"))
}

linalg_lstsq <- function(A, B, rcond = NULL, ..., driver = "gelsy") torch_linalg_lstsq(A, B, rcond, driver = driver)

linalg_matrix_norm <- function(A, ord = "fro", dim = c(-2, -1), keepdim = FALSE, dtype = NULL) {
  torch_linalg_matrix_norm(A, ord, dim, keepdim, dtype = dtype)
}

linalg_matrix_power <- function(A, n) torch_linalg_matrix_power(A, n)

linalg_matrix_rank <- function(A, ..., atol = NULL, rtol = NULL, tol = NULL, hermitian = FALSE) {
  if (!is.null(tol)) warning("tol is deprecated: use atol or rtol", call. = FALSE)
  if (!is.null(tol)) atol <- if (is_torch_tensor(tol)) tol$item() else tol
  torch_linalg_matrix_rank(self = A, atol = atol, rtol = rtol, hermitian = hermitian)
}

linalg_multi_dot <- function(tensors) torch_linalg_multi_dot(tensors)

linalg_norm <- function(A, ord = NULL, dim = NULL, keepdim = FALSE, dtype = NULL) {
  torch_linalg_norm(A, ord, dim, keepdim, dtype = dtype)
}

linalg_pinv <- function(A, rcond = NULL, hermitian = FALSE, atol = NULL, rtol = NULL) {
  if (!is.null(rcond)) warning("rcond is deprecated: use atol or rtol", call. = FALSE)
  if (is.null(rcond)) torch_linalg_pinv(A, atol = atol, rtol = rtol, hermitian = hermitian)
  else torch_linalg_pinv(A, rcond = rcond, hermitian = hermitian)
}

linalg_qr <- function(A, mode = "reduced") torch_linalg_qr(A, mode)

linalg_slogdet <- function(A) torch_linalg_slogdet(A)

linalg_solve <- function(A, B) torch_linalg_solve(A, B)

linalg_solve_triangular <- function(A, B, ..., upper, left = TRUE, unitriangular = FALSE) {
  torch_linalg_solve_triangular(A, B, upper = upper, left = left, unitriangular = unitriangular)
}

linalg_svd <- function(A, full_matrices = TRUE) torch_linalg_svd(A, full_matrices)

linalg_svdvals <- function(A) torch_linalg_svdvals(A)

linalg_tensorinv <- function(A, ind = 3L) torch_linalg_tensorinv(A, ind - 1)

linalg_tensorsolve <- function(A, B, dims = NULL) torch_linalg_tensorsolve(A, B, dims)

linalg_vector_norm <- function(A, ord = 2, dim = NULL, keepdim = FALSE, dtype = NULL) {
  torch_linalg_vector_norm(A, ord, dim, keepdim, dtype = dtype)
}

torch_lu <- function(A, pivot = TRUE, get_infos = FALSE) {
  found <- unname(torch_linalg_lu_factor_ex(A, pivot = pivot))
  if (get_infos) found else found[1:2]
}

named_results <- function(found, names) structure(found, names = names)
