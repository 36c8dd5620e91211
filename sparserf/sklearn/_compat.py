"""What scikit-learn calls otherwise in 1.5 than from 1.6 on."""

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # 1.5

    def validate_data(estimator, X, y="no_validation", *, reset=True, skip_check_array=False, **how):
        """(X, y), or X, checked; where skip_check_array, the names and the number of columns alone are."""
        if skip_check_array:
            estimator._check_feature_names(X, reset=reset)
            estimator._check_n_features(X, reset=reset)
            return X if isinstance(y, str) else (X, y)
        how["force_all_finite"] = how.pop("ensure_all_finite")
        return estimator._validate_data(X, y, reset=reset, **how)


__all__ = ["validate_data"]
