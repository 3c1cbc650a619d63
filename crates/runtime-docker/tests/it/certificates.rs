//! Certificates for one Engine and one client, by an authority that nobody else knows.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

/// Writes them under the names of the docker command, and the Engine's beside them.
pub(crate) fn write(place: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority
        .distinguished_name
        .push(DnType::CommonName, "zareba test authority");
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(authority, key).unwrap();
    fs::write(place.join("ca.pem"), authority.pem()).unwrap();
    for (certificate, key_file, purpose) in [
        (
            "server.pem",
            "server-key.pem",
            ExtendedKeyUsagePurpose::ServerAuth,
        ),
        ("cert.pem", "key.pem", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &authority).unwrap();
        fs::write(place.join(certificate), signed.pem()).unwrap();
        fs::write(place.join(key_file), key.serialize_pem()).unwrap();
    }
}
