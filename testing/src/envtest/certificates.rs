//! The keys and certificates of one control plane: a certificate authority of its own, a serving
//! certificate, an administrator, and the key that signs service account tokens. All are made new for each
//! start and live in its folder.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::Error;

/// A certificate and its private key, both PEM.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Everything kube-apiserver and its administrator need.
#[derive(Debug)]
pub(super) struct Certificates {
    /// The authority's certificate, PEM; it signed the server's and the administrator's.
    pub(super) authority: String,
    pub(super) server: Pair,
    pub(super) admin: Pair,
    /// ECDSA P-256: kube-apiserver takes it as well as RSA, and it is made in no time.
    pub(super) service_account_key: String,
    /// The public half, PEM.
    pub(super) service_account_public_key: String,
}

impl Certificates {
    pub(super) fn generate() -> Result<Self, Error> {
        generate().map_err(|err| Error::new(format!("cannot make certificates for the API server: {err}")))
    }
}

fn generate() -> Result<Certificates, rcgen::Error> {
    let authority = authority()?;
    let mut server = CertificateParams::new(["127.0.0.1", "localhost"].map(String::from))?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    // The group that RBAC lets do everything.
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let service_account = KeyPair::generate()?;
    Ok(Certificates {
        authority: authority.pem(),
        server: signed(server, &authority)?,
        admin: signed(admin, &authority)?,
        service_account_key: service_account.serialize_pem(),
        service_account_public_key: service_account.public_key_pem(),
    })
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "envtest");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn signed(params: CertificateParams, authority: &CertifiedIssuer<'_, KeyPair>) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
