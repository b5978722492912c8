//! Temporary.
#![allow(clippy::all, clippy::pedantic, missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::indexing_slicing)]
use backout_drivers::fakes::*; use backout_drivers::file::*; use backout_model::ports::*; use backout_model::*;
use std::sync::Arc; use std::time::Instant; use std::path::*; use std::io::Write;
fn go(d:&FileDriver,j:&MemoryJournal,id:u64,r:&FileRequest)->Effect{ let id=OperationId::from_bits(id); let t=Instant::now(); let p=d.prepare(id,r).unwrap(); let tp=t.elapsed(); let recipe=p.recipe.clone(); let a=j.arm(id,r.verb(),p); let t=Instant::now(); let c=d.apply(a).unwrap(); if id.bits()<100 {println!("  {}: prepare {tp:?} apply {:?}", r.summary().chars().take(40).collect::<String>(), t.elapsed());} Effect{recipe,completion:Some(c)} }
fn back(d:&FileDriver,j:&MemoryJournal,id:u64,e:&Effect)->Effect{ let id=OperationId::from_bits(id); let t=Instant::now(); let u=d.prepare_undo(id,e,OnConflict::Refuse).unwrap(); let tp=t.elapsed(); assert!(u.outcomes.iter().all(|o|o.kind.is_settled()),"{:?}",u.outcomes); let recipe=u.prepared.recipe.clone(); let a=j.arm(id,Verb::Undo,u.prepared); let t=Instant::now(); let c=d.apply(a).unwrap(); if id.bits()<100{println!("  undo: prepare {tp:?} apply {:?}", t.elapsed());} Effect{recipe,completion:Some(c)} }
#[test] fn bench(){
 let home=tempfile::tempdir().unwrap(); let base=home.path().canonicalize().unwrap(); let w=base.join("w"); std::fs::create_dir(&w).unwrap();
 let c=Arc::new(MemoryContents::default()); let dep=Arc::new(DirDepots::new(&base.join("s"),true).unwrap()); let d=FileDriver::new(c.clone(),c.clone(),dep); let j=MemoryJournal::new(c.clone());
 let n=10000; println!("batch of {n} new files, 4 KiB, 100 dirs exist");
 for k in 0..100 {std::fs::create_dir(w.join(format!("d{k}"))).unwrap();}
 let reqs:Vec<_>=(0..n).map(|k|FileRequest::write(w.join(format!("d{}/f{k}",k%100)), {let mut v=vec![b'x';4096]; v.extend(k.to_string().bytes()); v})).collect();
 let e=go(&d,&j,1,&FileRequest::Batch(reqs)); println!("syncs {}",d.sync_count());
 println!("overwrite them"); let reqs:Vec<_>=(0..n).map(|k|FileRequest::write(w.join(format!("d{}/f{k}",k%100)), {let mut v=vec![b'y';4096]; v.extend(k.to_string().bytes()); v})).collect();
 let e2=go(&d,&j,2,&FileRequest::Batch(reqs)); back(&d,&j,3,&e2);
 println!("copy tree"); let e3=go(&d,&j,4,&FileRequest::Copy{from:w.join("d0"),to:w.join("c0"),recursive:true,replace:false}); let u=back(&d,&j,5,&e3); println!("redo"); back(&d,&j,6,&u);
 println!("rm -r of all"); let e4=go(&d,&j,7,&FileRequest::Remove{path:w.clone(),recursive:true}); back(&d,&j,8,&e4);
 println!("undo of creation"); back(&d,&j,9,&e);
 // small writes
 let f=w.join("small"); std::fs::write(&f,"x").unwrap(); let m=200;
 let t=Instant::now(); for k in 0..m { let tmp=w.join(".t"); let mut h=std::fs::File::create(&tmp).unwrap(); h.write_all(&vec![k as u8;4096]).unwrap(); h.sync_all().unwrap(); std::fs::rename(&tmp,&f).unwrap(); std::fs::File::open(&w).unwrap().sync_all().unwrap(); } let bare=t.elapsed();
 let t=Instant::now(); for k in 0..m { go(&d,&j,1000+k,&FileRequest::write(&f,vec![(k+1) as u8;4096])); } let ours=t.elapsed();
 println!("bare {:?} ours {:?} per write, ratio {:.2}", bare/m as u32, ours/m as u32, ours.as_secs_f64()/bare.as_secs_f64());
}
