# Our knockoffs in R's knockoff: knockoff.filter takes a function from X to knockoffs of X.
our_knockoffs <- function(feature_model = "auto", seed = 0, command = "knockoffs") {
  function(X) {
    files <- tempfile(c("table", "knockoffs"), fileext = ".csv")
    on.exit(unlink(files))
    table <- as.data.frame(X)
    names(table) <- paste0("x", seq_len(ncol(table)))
    write.csv(table, files[1], row.names = FALSE)
    options <- c("--out", files[2], "--feature-model", feature_model, "--seed", seed)
    status <- system2(command, c("sample", files[1], options))
    if (status != 0) stop("knockoffs sample failed with exit code ", status)
    drawn <- as.matrix(read.csv(files[2]))
    dimnames(drawn) <- dimnames(X)
    drawn
  }
}

# library(knockoff)
# result <- knockoff.filter(X, y, knockoffs = our_knockoffs(), statistic = stat.glmnet_coefdiff, fdr = 0.1)
