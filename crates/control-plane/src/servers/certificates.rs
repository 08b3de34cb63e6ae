//! Certificates and keys of the control plane, and serving certificates for programs next to it.
//!
//! The control plane has a CA, a serving certificate, a client certificate for the administrator,
//! and a key for signing service account tokens. Each start generates new ones in the control
//! plane's directory.

use std::collections::BTreeSet;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

#[derive(Debug)]
pub(crate) struct Certificates {
    /// PEM certificate of the CA that signed `server` and `admin`.
    pub(crate) authority: String,
    pub(crate) server: Pair,
    pub(crate) admin: Pair,
    /// PEM private key for signing service account tokens. ECDSA P-256, because generating RSA keys
    /// is slow.
    pub(crate) service_account_key: String,
    pub(crate) service_account_public_key: String,
}

impl Certificates {
    pub(crate) fn generate() -> Result<Self, Error> {
        generate_certificates()
            .map_err(|err| Error::new(format!("cannot generate certificates for the API server: {err}")))
    }
}

fn generate_certificates() -> Result<Certificates, rcgen::Error> {
    let authority = create_authority("envtest")?;
    let mut server = CertificateParams::new(["127.0.0.1", "localhost"].map(String::from))?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    // RBAC grants full access to this group.
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let service_account = KeyPair::generate()?;
    Ok(Certificates {
        authority: authority.pem(),
        server: sign_pair(server, &authority)?,
        admin: sign_pair(admin, &authority)?,
        service_account_key: service_account.serialize_pem(),
        service_account_public_key: service_account.public_key_pem(),
    })
}

fn create_authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn sign_pair(
    params: CertificateParams,
    authority: &CertifiedIssuer<'_, KeyPair>,
) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// A certificate for a server on this machine, along with the CA that clients must trust. All in
/// PEM format.
#[derive(Clone, Debug)]
pub struct ServingCertificate {
    /// Certificate of the CA.
    pub authority: String,
    /// Certificate of the server.
    pub certificate: String,
    /// Private key of the server.
    pub key: String,
}

/// Issues a serving certificate for `127.0.0.1`, `localhost` and the given host name or address.
///
/// # Errors
///
/// Returns an error if the host isn't valid as a subject alternative name.
pub fn issue_serving_certificate(host: &str) -> Result<ServingCertificate, Error> {
    let issue = || -> Result<ServingCertificate, rcgen::Error> {
        let authority = create_authority("envtest webhooks")?;
        let names = BTreeSet::from(["127.0.0.1", "localhost", host]);
        let mut server = CertificateParams::new(names.into_iter().map(String::from).collect::<Vec<_>>())?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let Pair { certificate, key } = sign_pair(server, &authority)?;
        Ok(ServingCertificate {
            authority: authority.pem(),
            certificate,
            key,
        })
    };
    issue().map_err(|err| Error::new(format!("cannot create a certificate for webhooks: {err}")))
}
